package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

import kafka.api.ApiVersion$;
import kafka.api.LeaderAndIsr;
import kafka.cluster.DelayedOperations;
import kafka.cluster.Partition;
import kafka.cluster.PartitionStateStore;
import kafka.cluster.Replica;
import kafka.log.AppendOrigin;
import kafka.log.Log;
import kafka.log.LogReadInfo;
import kafka.server.FetchHighWatermark$;
import kafka.server.FetchIsolation;
import kafka.server.FetchLogEnd$;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.requests.EpochEndOffset;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Partition of 2.6, with ZooKeeper. */
final class Release implements PartitionStateStore {
    private static final int LOCAL = 1;

    private static final class Operations extends DelayedOperations {
        Operations() {
            super(new TopicPartition("t", 0), null, null, null);
        }

        @Override
        public void checkAndCompleteAll() { }

        @Override
        public void checkAndCompleteFetch() { }

        @Override
        public int numDelayedDelete() {
            return 0;
        }
    }

    private final Clock clock;
    private final Partition partition;
    private final Log log;
    private LeaderAndIsr wanted;
    private int proposals;
    private boolean fails;

    Release(File folder, Clock clock, Map<Integer, PartitionSubject.Registration> brokers) throws Exception {
        this.clock = clock;
        TopicPartition name = new TopicPartition("t", 0);
        log = Logs.open(folder, Logs.config(Map.of("min.insync.replicas", 1)), 0, 0, true, clock);
        partition = new Partition(name, PartitionSubject.LAG_MS, ApiVersion$.MODULE$.latestVersion(), LOCAL, clock, this,
            new Operations(), null, null);
        partition.setLog(log, false);
    }

    void close() {
        Partition.removeMetrics(new TopicPartition("t", 0));
        log.closeHandlers();
    }

    @Override
    public Properties fetchTopicConfig() {
        return new Properties();
    }

    @Override
    public Option<Object> shrinkIsr(int controllerEpoch, LeaderAndIsr state) {
        proposals++;
        wanted = state;
        return fails ? Option.empty() : new Some<>(state.zkVersion() + 1);
    }

    @Override
    public Option<Object> expandIsr(int controllerEpoch, LeaderAndIsr state) {
        return shrinkIsr(controllerEpoch, state);
    }

    void decide(List<Object> operation) {
        fails = !(Boolean) operation.get(1);
    }

    private LeaderAndIsrPartitionState state(int leader, int leaderEpoch, int partitionEpoch, List<Integer> isr,
        List<Integer> replicas) {
        return new LeaderAndIsrPartitionState().setLeader(leader).setLeaderEpoch(leaderEpoch).setIsr(isr)
            .setZkVersion(partitionEpoch).setReplicas(replicas);
    }

    void lead(int leaderEpoch, int partitionEpoch, List<Integer> isr, List<Integer> replicas) {
        partition.makeLeader(state(LOCAL, leaderEpoch, partitionEpoch, isr, replicas), null);
    }

    void follow(int leader, int leaderEpoch, int partitionEpoch, List<Integer> replicas) {
        partition.makeFollower(state(leader, leaderEpoch, partitionEpoch, replicas, replicas), null);
    }

    String append(int count, boolean acksAll) {
        try {
            partition.appendRecordsToLeader(Batches.batch(0, count, 0), AppendOrigin.Client$.MODULE$, acksAll ? -1 : 1);
            return null;
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
    }

    long logEnd() {
        return log.logEndOffset();
    }

    String copy(int count, int epoch) {
        partition.appendRecordsToFollowerOrFutureReplica(Batches.batch(log.logEndOffset(), count, epoch), false);
        return null;
    }

    long logStart() {
        return log.logStartOffset();
    }

    void deleteBefore(long offset) throws Exception {
        log.maybeIncrementLogStartOffset(Math.min(offset, log.highWatermark()), kafka.log.ClientRecordDeletion$.MODULE$);
    }

    void truncate(long offset) {
        log.truncateTo(offset);
    }

    Object fetch(int replica, long brokerEpoch, long offset, long leaderEpoch, long lastEpoch) {
        FetchIsolation isolation = replica < 0 ? FetchHighWatermark$.MODULE$ : FetchLogEnd$.MODULE$;
        LogReadInfo read;
        try {
            read = partition.readRecords(offset, Subject.epoch(leaderEpoch), 1_000_000, isolation, true, true);
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
        List<Object> batches = new ArrayList<>();
        // As ReplicaManager.updateFollowerFetchState does it.
        if (replica < 0 || partition.updateFollowerFetchState(replica, read.fetchedData().fetchOffsetMetadata(), 0,
            clock.nowMs, read.logEndOffset()))
            for (RecordBatch batch : read.fetchedData().records().batches())
                batches.add(Arrays.asList(batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch()));
        return Arrays.asList(read.highWatermark(), read.logStartOffset(), null, batches);
    }

    Object epochEnd(long leaderEpoch, int epoch) {
        EpochEndOffset end = partition.lastOffsetForLeaderEpoch(Subject.epoch(leaderEpoch), epoch, true);
        return Arrays.asList(end.error().name(), end.leaderEpoch(), end.endOffset());
    }

    Object latest(long leaderEpoch, boolean client) {
        Option<IsolationLevel> isolation = client ? new Some<>(IsolationLevel.READ_UNCOMMITTED) : Option.empty();
        try {
            Option<TimestampAndOffset> found =
                partition.fetchOffsetForTimestamp(-1, isolation, Subject.epoch(leaderEpoch), true);
            return found.get().offset;
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
    }

    void shrink() {
        partition.maybeShrinkIsr();
    }

    void minIsr(int value) {
        log.config_$eq(Logs.config(Map.of("min.insync.replicas", value)));
    }

    String outcome(long offset) {
        Tuple2<Object, Errors> outcome = partition.checkEnoughReplicasReachOffset(offset);
        return (Boolean) outcome._1() || outcome._2() != Errors.NONE ? outcome._2().name() : null;
    }

    List<Object> state() {
        List<Object> shown = new ArrayList<>();
        shown.addAll(Arrays.asList(partition.isLeader(), partition.getLeaderEpoch(), log.highWatermark(),
            log.logEndOffset(), proposals));
        if (!partition.isLeader())
            return shown;
        Map<Integer, Object> followers = new TreeMap<>();
        for (Replica replica : CollectionConverters.asJava(partition.remoteReplicas())) {
            boolean caughtUp = replica.logEndOffset() == log.logEndOffset()
                || clock.nowMs - replica.lastCaughtUpTimeMs() <= PartitionSubject.LAG_MS;
            followers.put(replica.brokerId(), Arrays.asList(replica.brokerId(), replica.logEndOffset(), caughtUp));
        }
        shown.add(new ArrayList<>(followers.values()));
        shown.add(PartitionSubject.sorted(CollectionConverters.asJava(partition.inSyncReplicaIds())));
        if (wanted != null)
            shown.add(Arrays.asList(PartitionSubject.sorted(CollectionConverters.asJava(wanted.isr())),
                wanted.leaderEpoch(), wanted.zkVersion()));
        return shown;
    }
}
