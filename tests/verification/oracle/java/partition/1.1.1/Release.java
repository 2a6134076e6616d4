package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import kafka.server.FetchPartitionData;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.requests.EpochEndOffset;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.IsolationLevel;
import org.apache.kafka.common.requests.LeaderAndIsrRequest;
import scala.Tuple2;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Partition of 1.1 and 2.0, in a ReplicaManager. */
final class Release {
    private static final int LOCAL = 1;

    private final Clock clock;
    private final Broker broker;

    Release(File folder, Clock clock, Map<Integer, PartitionSubject.Registration> brokers) {
        this.clock = clock;
        broker = new Broker(LOCAL, folder, clock);
    }

    void close() {
        broker.close();
    }

    void decide(List<Object> operation) {
        broker.leading.fails = !(Boolean) operation.get(1);
    }

    private LeaderAndIsrRequest.PartitionState state(int leader, int leaderEpoch, int partitionEpoch, List<Integer> isr,
        List<Integer> replicas) {
        return new LeaderAndIsrRequest.PartitionState(0, leader, leaderEpoch, isr, partitionEpoch, replicas, false);
    }

    void lead(int leaderEpoch, int partitionEpoch, List<Integer> isr, List<Integer> replicas) {
        broker.partition.makeLeader(0, state(LOCAL, leaderEpoch, partitionEpoch, isr, replicas), 0);
    }

    void follow(int leader, int leaderEpoch, int partitionEpoch, List<Integer> replicas) {
        broker.partition.makeFollower(0, state(leader, leaderEpoch, partitionEpoch, replicas, replicas), 0);
    }

    String append(int count, boolean acksAll) {
        try {
            broker.partition.appendRecordsToLeader(Batches.batch(0, count, 0), true, acksAll ? -1 : 1);
            return null;
        } catch (Exception refused) {
            return Leading.name(Errors.forException(refused));
        }
    }

    long logEnd() {
        return broker.log.logEndOffset();
    }

    String copy(int count, int epoch) {
        broker.partition.appendRecordsToFollowerOrFutureReplica(Batches.batch(broker.log.logEndOffset(), count, epoch), false);
        return null;
    }

    long logStart() {
        return broker.log.logStartOffset();
    }

    void deleteBefore(long offset) {
        broker.replica.maybeIncrementLogStartOffset(Math.min(offset, broker.highWatermark()));
    }

    /** To where the batch begins that holds the offset. */
    void truncate(long offset) {
        for (long[] batch : Logs.batches(broker.log))
            if (batch[2] <= offset && offset <= batch[3])
                offset = batch[2];
        broker.partition.truncateTo(offset, false);
        broker.highWatermark();
    }

    Object fetch(int replica, long brokerEpoch, long offset, long leaderEpoch, long lastEpoch) {
        List<Object> seen = new ArrayList<>();
        broker.manager.fetchMessages(0, replica, 0, 1_000_000, true,
            Broker.seq(List.of(new Tuple2<>(Broker.NAME, new FetchRequest.PartitionData(offset, 0, 1_000_000)))),
            broker.manager.fetchMessages$default$7(),
            new AbstractFunction1<Seq<Tuple2<TopicPartition, FetchPartitionData>>, BoxedUnit>() {
                @Override
                public BoxedUnit apply(Seq<Tuple2<TopicPartition, FetchPartitionData>> answers) {
                    seen.add(shown(JavaConverters.seqAsJavaListConverter(answers).asJava().get(0)._2()));
                    return BoxedUnit.UNIT;
                }
            }, IsolationLevel.READ_UNCOMMITTED);
        return seen.get(0);
    }

    private static Object shown(FetchPartitionData read) {
        if (read.error() != Errors.NONE)
            return Leading.name(read.error());
        List<Object> batches = new ArrayList<>();
        for (RecordBatch batch : read.records().batches())
            batches.add(Arrays.asList(batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch()));
        return Arrays.asList(read.highWatermark(), read.logStartOffset(), null, batches);
    }

    /** 1.1 has no epoch in its answer. */
    Object epochEnd(long leaderEpoch, int epoch) {
        EpochEndOffset end = broker.partition.lastOffsetForLeaderEpoch(epoch);
        Object found = -1;
        try {
            found = EpochEndOffset.class.getMethod("leaderEpoch").invoke(end);
        } catch (ReflectiveOperationException none) { }
        return Arrays.asList(Leading.name(end.error()), found, end.endOffset());
    }

    /** As KafkaApis answers a replica. */
    Object latest(long leaderEpoch, boolean client) {
        if (!Leading.leads(broker.partition))
            return "NOT_LEADER_OR_FOLLOWER";
        return client ? broker.highWatermark() : broker.log.logEndOffset();
    }

    void shrink() {
        broker.partition.maybeShrinkIsr(PartitionSubject.LAG_MS);
    }

    void minIsr(int value) {
        broker.log.config_$eq(Logs.config(Map.of("min.insync.replicas", value)));
    }

    String outcome(long offset) {
        return Leading.outcome(broker.partition, offset);
    }

    List<Object> state() {
        return broker.leading.state(broker.partition, broker.highWatermark(), broker.log.logEndOffset(), clock);
    }
}
