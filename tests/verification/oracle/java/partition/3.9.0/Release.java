package highwater;

import java.io.File;
import java.lang.reflect.Proxy; // from 4.0.0
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

import kafka.api.LeaderAndIsr; // before 4.0.0
import kafka.cluster.AlterPartitionListener; // before 4.0.0
import kafka.cluster.DelayedOperations;
import kafka.cluster.Partition;
import kafka.cluster.Replica; // before 4.0.0
import kafka.log.UnifiedLog; // before 4.0.0
import kafka.server.AlterPartitionManager; // before 4.4.0
import kafka.server.RequestLocal; // before 4.0.0
import kafka.server.metadata.KRaftMetadataCache; // before 4.0.0
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicIdPartition; // before 4.0.0
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState; // before 4.0.0
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.FileRecords.TimestampAndOffset; // before 4.0.0
import org.apache.kafka.common.record.RecordBatch; // before 4.0.0
import org.apache.kafka.common.requests.FetchRequest.PartitionData;
import org.apache.kafka.metadata.LeaderAndIsr; // from 4.0.0
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.common.KRaftVersion; // before 4.0.0
import org.apache.kafka.server.common.MetadataVersion; // before 4.0.0
import org.apache.kafka.storage.internals.log.AppendOrigin; // before 4.0.0
import org.apache.kafka.storage.internals.log.FetchIsolation; // before 4.0.0
import org.apache.kafka.storage.internals.log.FetchParams; // before 4.0.0
import org.apache.kafka.storage.internals.log.LogReadInfo; // before 4.0.0
import org.apache.kafka.metadata.MetadataCache; // from 4.0.0
import org.apache.kafka.server.common.TopicIdPartition; // from 4.0.0
import org.apache.kafka.server.partition.AlterPartitionManager; // from 4.4.0
import org.apache.kafka.server.replica.Replica; // from 4.0.0
import org.apache.kafka.server.storage.log.FetchIsolation; // from 4.0.0
import org.apache.kafka.server.storage.log.FetchParams; // from 4.0.0
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.VerificationGuard; // before 4.0.0
import org.apache.kafka.storage.internals.log.OffsetResultHolder; // from 4.0.0
import org.apache.kafka.storage.internals.log.UnifiedLog; // from 4.0.0
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Partition since 3.9, in KRaft. */
final class Release implements AlterPartitionManager {
    private static final int LOCAL = 1;
    static final Uuid TOPIC = new Uuid(7, 7);

    private static final class Listener implements AlterPartitionListener { // before 4.0.0
        public void markIsrExpand() { } // before 4.0.0

        public void markIsrShrink() { } // before 4.0.0

        public void markFailed() { } // before 4.0.0
    } // before 4.0.0

    private static final class Operations extends DelayedOperations {
        Operations() {
            super(new TopicPartition("t", 0), null, null, null); // before 4.0.0
            super(Option.empty(), new TopicPartition("t", 0), null, null, null, null); // from 4.0.0
        }

        @Override
        public void checkAndCompleteAll() { }

        @Override
        public int numDelayedDelete() {
            return 0;
        }
    }

    private static final class Metadata extends KRaftMetadataCache { // before 4.0.0
        private final Map<Integer, PartitionSubject.Registration> brokers; // before 4.0.0

        Metadata(Map<Integer, PartitionSubject.Registration> brokers) { // before 4.0.0
            super(LOCAL, () -> KRaftVersion.KRAFT_VERSION_1); // before 4.0.0
            this.brokers = brokers; // before 4.0.0
        } // before 4.0.0

        private boolean is(int broker, String state) { // before 4.0.0
            return brokers.containsKey(broker) && brokers.get(broker).state.equals(state); // before 4.0.0
        } // before 4.0.0

        @Override // before 4.0.0
        public boolean hasAliveBroker(int broker) { // before 4.0.0
            return brokers.containsKey(broker) && !is(broker, "fenced"); // before 4.0.0
        } // before 4.0.0

        @Override // before 4.0.0
        public boolean isBrokerFenced(int broker) { // before 4.0.0
            return is(broker, "fenced"); // before 4.0.0
        } // before 4.0.0

        @Override // before 4.0.0
        public boolean isBrokerShuttingDown(int broker) { // before 4.0.0
            return is(broker, "stopping"); // before 4.0.0
        } // before 4.0.0

        @Override // before 4.0.0
        public Option<Object> getAliveBrokerEpoch(int broker) { // before 4.0.0
            return hasAliveBroker(broker) ? new Some<>(brokers.get(broker).epoch) : Option.empty(); // before 4.0.0
        } // before 4.0.0
    private static MetadataCache metadata(Map<Integer, PartitionSubject.Registration> brokers) { // from 4.0.0
        return (MetadataCache) Proxy.newProxyInstance(Release.class.getClassLoader(), new Class<?>[] {MetadataCache.class}, // from 4.0.0
            (self, method, arguments) -> { // from 4.0.0
                PartitionSubject.Registration known = brokers.get(arguments[0]); // from 4.0.0
                String state = known == null ? "" : known.state; // from 4.0.0
                switch (method.getName()) { // from 4.0.0
                    case "hasAliveBroker": return known != null && !state.equals("fenced"); // from 4.0.0
                    case "isBrokerFenced": return state.equals("fenced"); // from 4.0.0
                    case "isBrokerShuttingDown": return state.equals("stopping"); // from 4.0.0
                    case "getAliveBrokerEpoch": // from 4.0.0
                        return known == null || state.equals("fenced") ? Optional.empty() : Optional.of(known.epoch); // from 4.0.0
                    default: throw new IllegalStateException(method.toString()); // from 4.0.0
                } // from 4.0.0
            }); // from 4.0.0
    }

    private final Clock clock;
    private final Partition partition;
    private final UnifiedLog log;
    private CompletableFuture<LeaderAndIsr> asked;
    private final AlterPartitionManager manager;
    private LeaderAndIsr wanted;
    private int proposals;

    Release(File folder, Clock clock, Map<Integer, PartitionSubject.Registration> brokers) throws Exception {
        this(folder, clock, brokers, 0, null);
    }

    /** One of several partitions with a manager in common. */
    Release(File folder, Clock clock, Map<Integer, PartitionSubject.Registration> brokers, int number,
        AlterPartitionManager manager) throws Exception {
        this.clock = clock;
        this.manager = manager;
        TopicPartition name = new TopicPartition("t", number);
        log = Logs.open(folder, Logs.config(Map.of("min.insync.replicas", 1)), 0, 0, true, clock);
        partition = new Partition(name, PartitionSubject.LAG_MS, MetadataVersion.latestProduction(), LOCAL, () -> 1L, // before 4.0.0
            clock, new Listener(), new Operations(), new Metadata(brokers), null, this, new Some<>(TOPIC)); // before 4.0.0
        partition = new Partition(name, PartitionSubject.LAG_MS, LOCAL, () -> 1L, clock, new Calls.Listener(), // from 4.0.0
            new Operations(), metadata(brokers), null, this, new Some<>(TOPIC)); // from 4.0.0
        partition.setLog(log, false);
    }

    void close() {
        Partition.removeMetrics(partition.topicPartition());
        log.closeHandlers(); // before 4.4.0
        log.closeQuietly(); // from 4.4.0
    }

    @Override // from 4.4.0
    public void start() { } // from 4.4.0

    @Override // from 4.4.0
    public void shutdown() { } // from 4.4.0

    @Override
    public CompletableFuture<LeaderAndIsr> submit(TopicIdPartition name, LeaderAndIsr state, int controllerEpoch) { // before 4.0.0
    public CompletableFuture<LeaderAndIsr> submit(TopicIdPartition name, LeaderAndIsr state) { // from 4.0.0
        CompletableFuture<LeaderAndIsr> future = new CompletableFuture<>();
        proposals++;
        if (manager != null)
            return manager.submit(name, state, controllerEpoch); // before 4.0.0
            return manager.submit(name, state); // from 4.0.0
        if (asked != null) { // As AlterPartitionManager refuses it.
            future.completeExceptionally(Errors.OPERATION_NOT_ATTEMPTED.exception());
            return future;
        }
        asked = future;
        wanted = state;
        return future;
    }

    private CompletableFuture<LeaderAndIsr> answered() {
        CompletableFuture<LeaderAndIsr> future = asked;
        asked = null;
        return future;
    }

    void decide(List<Object> operation) {
        if (asked == null)
            return;
        if (operation.get(0).equals("persist"))
            answered().complete(new LeaderAndIsr(LOCAL, Subject.number(operation.get(1)), LeaderRecoveryState.RECOVERED,
                wanted.isrWithBrokerEpoch(), Subject.number(operation.get(2))));
        else
            answered().completeExceptionally(Errors.valueOf((String) operation.get(1)).exception());
    }

    private LeaderAndIsrPartitionState state(int leader, int leaderEpoch, int partitionEpoch, List<Integer> isr, // before 4.0.0
        List<Integer> replicas) { // before 4.0.0
        return new LeaderAndIsrPartitionState().setLeader(leader).setLeaderEpoch(leaderEpoch).setIsr(isr) // before 4.0.0
            .setPartitionEpoch(partitionEpoch).setReplicas(replicas); // before 4.0.0
    } // before 4.0.0

    void lead(int leaderEpoch, int partitionEpoch, List<Integer> isr, List<Integer> replicas) {
        partition.makeLeader(state(LOCAL, leaderEpoch, partitionEpoch, isr, replicas), null, new Some<>(TOPIC), // before 4.0.0
            Option.empty()); // before 4.0.0
        Calls.lead(partition, TOPIC, LOCAL, leaderEpoch, partitionEpoch, isr, replicas); // from 4.0.0
    }

    void follow(int leader, int leaderEpoch, int partitionEpoch, List<Integer> replicas) {
        partition.makeFollower(state(leader, leaderEpoch, partitionEpoch, replicas, replicas), null, new Some<>(TOPIC), // before 4.0.0
            Option.empty()); // before 4.0.0
        Calls.follow(partition, TOPIC, leader, leaderEpoch, partitionEpoch, replicas); // from 4.0.0
    }

    String append(int count, boolean acksAll) {
        try {
            partition.appendRecordsToLeader(Batches.batch(0, count, 0), AppendOrigin.CLIENT, acksAll ? -1 : 1, // before 4.0.0
                RequestLocal.NoCaching(), VerificationGuard.SENTINEL); // before 4.0.0
            Calls.append(partition, count, acksAll ? -1 : 1); // from 4.0.0
            return null;
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
    }

    long logEnd() {
        return log.logEndOffset();
    }

    String copy(int count, int epoch) {
        partition.appendRecordsToFollowerOrFutureReplica(Batches.batch(log.logEndOffset(), count, epoch), false); // before 4.0.0
        partition.appendRecordsToFollowerOrFutureReplica(Batches.batch(log.logEndOffset(), count, epoch), false, epoch); // from 4.0.0
        return null;
    }

    long logStart() {
        return log.logStartOffset();
    }

    void deleteBefore(long offset) throws Exception {
        log.maybeIncrementLogStartOffset(Math.min(offset, log.highWatermark()), LogStartOffsetIncrementReason.ClientRecordDeletion);
    }

    void truncate(long offset) {
        log.truncateTo(offset);
    }

    Object fetch(int replica, long brokerEpoch, long offset, long leaderEpoch, long lastEpoch) {
        FetchIsolation isolation = replica < 0 ? FetchIsolation.HIGH_WATERMARK : FetchIsolation.LOG_END;
        FetchParams parameters =
            new FetchParams((short) 17, replica, brokerEpoch, 0, 1, 1_000_000, isolation, Optional.empty()); // before 4.0.0
            new FetchParams(replica, brokerEpoch, 0, 1, 1_000_000, isolation, Optional.empty()); // from 4.0.0
        PartitionData asked = new PartitionData(TOPIC, offset, 0, 1_000_000, Subject.epoch(leaderEpoch), Subject.epoch(lastEpoch));
        LogReadInfo read; // before 4.0.0
        try {
            read = partition.fetchRecords(parameters, asked, clock.nowMs, 1_000_000, true, true); // before 4.0.0
            return Calls.shown(partition.fetchRecords(parameters, asked, clock.nowMs, 1_000_000, true, true)); // from 4.0.0
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
        if (read.divergingEpoch.isPresent()) // before 4.0.0
            return Arrays.asList(read.highWatermark, read.logStartOffset, // before 4.0.0
                Arrays.asList(read.divergingEpoch.get().epoch(), read.divergingEpoch.get().endOffset())); // before 4.0.0
        List<Object> batches = new ArrayList<>(); // before 4.0.0
        for (RecordBatch batch : read.fetchedData.records.batches()) // before 4.0.0
            batches.add(Arrays.asList(batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch())); // before 4.0.0
        return Arrays.asList(read.highWatermark, read.logStartOffset, null, batches); // before 4.0.0
    }

    Object epochEnd(long leaderEpoch, int epoch) {
        EpochEndOffset end = partition.lastOffsetForLeaderEpoch(Subject.epoch(leaderEpoch), epoch, true);
        return Arrays.asList(Errors.forCode(end.errorCode()).name(), end.leaderEpoch(), end.endOffset());
    }

    Object latest(long leaderEpoch, boolean client) {
        Option<IsolationLevel> isolation = client ? new Some<>(IsolationLevel.READ_UNCOMMITTED) : Option.empty();
        try {
            Option<TimestampAndOffset> found = // before 4.0.0
            OffsetResultHolder found = // from 4.0.0
                partition.fetchOffsetForTimestamp(-1, isolation, Subject.epoch(leaderEpoch), true, Option.empty());
            return found.get().offset; // before 4.0.0
            return found.timestampAndOffsetOpt().get().offset; // from 4.0.0
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
    }

    void shrink() {
        partition.maybeShrinkIsr();
    }

    void minIsr(int value) {
        log.updateConfig(Logs.config(Map.of("min.insync.replicas", value)));
    }

    String outcome(long offset) {
        Tuple2<Object, Errors> outcome = partition.checkEnoughReplicasReachOffset(offset);
        return (Boolean) outcome._1() || outcome._2() != Errors.NONE ? outcome._2().name() : null;
    }

    List<Object> state() {
        List<Object> shown = new ArrayList<>();
        shown.addAll(Arrays.asList(partition.isLeader(), partition.getLeaderEpoch(), partition.getPartitionEpoch(),
            log.highWatermark(), log.logEndOffset(), proposals));
        if (!partition.isLeader())
            return shown;
        Map<Integer, Object> followers = new TreeMap<>();
        for (Replica replica : CollectionConverters.asJava(partition.remoteReplicas()))
            followers.put(replica.brokerId(), Arrays.asList(replica.brokerId(), replica.stateSnapshot().logEndOffset(),
                replica.stateSnapshot().isCaughtUp(log.logEndOffset(), clock.nowMs, PartitionSubject.LAG_MS),
                replica.stateSnapshot().brokerEpoch().getOrElse(() -> -1L))); // before 4.0.0
                replica.stateSnapshot().brokerEpoch().orElse(-1L))); // from 4.0.0
        shown.add(new ArrayList<>(followers.values()));
        shown.add(PartitionSubject.sorted(CollectionConverters.asJava(partition.partitionState().isr()))); // before 4.0.0
        shown.add(PartitionSubject.sorted(Calls.isr(partition))); // from 4.0.0
        shown.add(partition.partitionState().isInflight());
        if (asked != null) {
            Map<Integer, Object> members = new TreeMap<>();
            for (BrokerState member : CollectionConverters.asJava(wanted.isrWithBrokerEpoch())) // before 4.0.0
            for (BrokerState member : wanted.isrWithBrokerEpoch()) // from 4.0.0
                members.put(member.brokerId(), Arrays.asList(member.brokerId(), member.brokerEpoch()));
            shown.add(Arrays.asList(new ArrayList<>(members.values()), wanted.leaderEpoch(), wanted.partitionEpoch()));
        }
        return shown;
    }
}
