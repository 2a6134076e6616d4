package highwater;

import java.io.File;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

import kafka.cluster.DelayedOperations;
import kafka.cluster.Partition;
import kafka.server.AlterPartitionManager;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FetchRequest.PartitionData;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.server.common.TopicIdPartition;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Partition from 4.0 on. */
final class Release implements AlterPartitionManager {
    private static final int LOCAL = 1;
    private static final Uuid TOPIC = new Uuid(7, 7);

    private static final class Operations extends DelayedOperations {
        Operations() {
            super(Option.empty(), new TopicPartition("t", 0), null, null, null, null);
        }

        @Override
        public void checkAndCompleteAll() { }

        @Override
        public int numDelayedDelete() {
            return 0;
        }
    }

    private static MetadataCache metadata(Map<Integer, PartitionSubject.Registration> brokers) {
        return (MetadataCache) Proxy.newProxyInstance(Release.class.getClassLoader(), new Class<?>[] {MetadataCache.class},
            (self, method, arguments) -> {
                PartitionSubject.Registration known = brokers.get(arguments[0]);
                String state = known == null ? "" : known.state;
                switch (method.getName()) {
                    case "hasAliveBroker": return known != null && !state.equals("fenced");
                    case "isBrokerFenced": return state.equals("fenced");
                    case "isBrokerShuttingDown": return state.equals("stopping");
                    case "getAliveBrokerEpoch":
                        return known == null || state.equals("fenced") ? Optional.empty() : Optional.of(known.epoch);
                    default: throw new IllegalStateException(method.toString());
                }
            });
    }

    private final Clock clock;
    private final Partition partition;
    private final UnifiedLog log;
    private CompletableFuture<LeaderAndIsr> asked;
    private LeaderAndIsr wanted;
    private int proposals;

    Release(File folder, Clock clock, Map<Integer, PartitionSubject.Registration> brokers) throws Exception {
        this.clock = clock;
        TopicPartition name = new TopicPartition("t", 0);
        log = Logs.open(folder, Logs.config(Map.of("min.insync.replicas", 1)), 0, 0, true, clock);
        partition = new Partition(name, PartitionSubject.LAG_MS, LOCAL, () -> 1L, clock, new Calls.Listener(),
            new Operations(), metadata(brokers), null, this, new Some<>(TOPIC));
        partition.setLog(log, false);
    }

    void close() {
        Partition.removeMetrics(new TopicPartition("t", 0));
        log.closeHandlers();
    }

    @Override
    public CompletableFuture<LeaderAndIsr> submit(TopicIdPartition name, LeaderAndIsr state) {
        CompletableFuture<LeaderAndIsr> future = new CompletableFuture<>();
        proposals++;
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

    void lead(int leaderEpoch, int partitionEpoch, List<Integer> isr, List<Integer> replicas) {
        Calls.lead(partition, TOPIC, LOCAL, leaderEpoch, partitionEpoch, isr, replicas);
    }

    void follow(int leader, int leaderEpoch, int partitionEpoch, List<Integer> replicas) {
        Calls.follow(partition, TOPIC, leader, leaderEpoch, partitionEpoch, replicas);
    }

    String append(int count, boolean acksAll) {
        try {
            Calls.append(partition, count, acksAll ? -1 : 1);
            return null;
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
    }

    long logEnd() {
        return log.logEndOffset();
    }

    String copy(int count, int epoch) {
        partition.appendRecordsToFollowerOrFutureReplica(Batches.batch(log.logEndOffset(), count, epoch), false, epoch);
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
            new FetchParams(replica, brokerEpoch, 0, 1, 1_000_000, isolation, Optional.empty());
        PartitionData asked = new PartitionData(TOPIC, offset, 0, 1_000_000, Subject.epoch(leaderEpoch), Subject.epoch(lastEpoch));
        try {
            return Calls.shown(partition.fetchRecords(parameters, asked, clock.nowMs, 1_000_000, true, true));
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
    }

    Object epochEnd(long leaderEpoch, int epoch) {
        EpochEndOffset end = partition.lastOffsetForLeaderEpoch(Subject.epoch(leaderEpoch), epoch, true);
        return Arrays.asList(Errors.forCode(end.errorCode()).name(), end.leaderEpoch(), end.endOffset());
    }

    Object latest(long leaderEpoch, boolean client) {
        Option<IsolationLevel> isolation = client ? new Some<>(IsolationLevel.READ_UNCOMMITTED) : Option.empty();
        try {
            OffsetResultHolder found =
                partition.fetchOffsetForTimestamp(-1, isolation, Subject.epoch(leaderEpoch), true, Option.empty());
            return found.timestampAndOffsetOpt().get().offset;
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
                replica.stateSnapshot().brokerEpoch().orElse(-1L)));
        shown.add(new ArrayList<>(followers.values()));
        shown.add(PartitionSubject.sorted(Calls.isr(partition)));
        shown.add(partition.partitionState().isInflight());
        if (asked != null) {
            Map<Integer, Object> members = new TreeMap<>();
            for (BrokerState member : wanted.isrWithBrokerEpoch())
                members.put(member.brokerId(), Arrays.asList(member.brokerId(), member.brokerEpoch()));
            shown.add(Arrays.asList(new ArrayList<>(members.values()), wanted.leaderEpoch(), wanted.partitionEpoch()));
        }
        return shown;
    }
}
