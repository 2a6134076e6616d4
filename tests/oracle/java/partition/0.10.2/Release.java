package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

import kafka.cluster.Partition;
import kafka.cluster.Replica;
import kafka.log.Log;
import kafka.server.FetchPartitionData;
import kafka.server.KafkaConfig;
import kafka.server.LogOffsetMetadata;
import kafka.server.ReplicaManager;
import kafka.utils.ZkUtils;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.LogEntry;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.PartitionState;
import scala.Function3;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Partition of 0.10.2, in a ReplicaManager that lasts, with a ZooKeeper that takes what it is told. */
final class Release {
    private static final int LOCAL = 1;
    private static ReplicaManager manager;
    private static int count;

    private final TopicPartition name = new TopicPartition("t" + count++, 0);
    private final Partition partition;
    private final Replica replica;
    private final Log log;

    private static final class ZooKeeper extends ZkUtils {
        ZooKeeper() {
            super(null, null, false);
        }

        @Override
        public Tuple2<Object, Object> conditionalUpdatePersistentPath(String path, String data, int version,
            Option<Function3<ZkUtils, String, String, Tuple2<Object, Object>>> check) {
            return new Tuple2<>(true, version + 1);
        }
    }

    Release(File folder, Clock clock, Map<Integer, PartitionSubject.Registration> brokers) throws Exception {
        if (manager == null) {
            Map<String, Object> settings = new HashMap<>();
            settings.put("broker.id", LOCAL);
            settings.put("zookeeper.connect", "none");
            settings.put("log.dirs", System.getProperty("java.io.tmpdir"));
            settings.put("replica.lag.time.max.ms", PartitionSubject.LAG_MS);
            manager = new ReplicaManager(new KafkaConfig(settings), new Metrics(), clock, new ZooKeeper(), Logs.AT_ONCE, null,
                new AtomicBoolean(false), null, Option.empty());
        }
        log = Logs.open(folder, Logs.config(Map.of()), 0, true, clock);
        partition = manager.getOrCreatePartition(name);
        replica = new Replica(LOCAL, partition, clock, 0, new Some<>(log));
        partition.addReplicaIfNotExists(replica);
    }

    void close() throws Exception {
        Logs.abandon(log);
    }

    void decide(List<Object> operation) {
        throw new UnsupportedOperationException();
    }

    private PartitionState state(int leader, int leaderEpoch, int partitionEpoch, List<Integer> isr, List<Integer> replicas) {
        return new PartitionState(0, leader, leaderEpoch, isr, partitionEpoch, new HashSet<>(replicas));
    }

    void lead(int leaderEpoch, int partitionEpoch, List<Integer> isr, List<Integer> replicas) {
        partition.makeLeader(0, state(LOCAL, leaderEpoch, partitionEpoch, isr, replicas), 0);
    }

    void follow(int leader, int leaderEpoch, int partitionEpoch, List<Integer> replicas) {
        partition.makeFollower(0, state(leader, leaderEpoch, partitionEpoch, replicas, replicas), 0);
    }

    private static String name(Errors error) {
        return error == Errors.NOT_LEADER_FOR_PARTITION ? "NOT_LEADER_OR_FOLLOWER" : error.name();
    }

    String append(int count, boolean acksAll) {
        try {
            partition.appendRecordsToLeader(Batches.batch(0, count, 0), acksAll ? -1 : 1);
            return null;
        } catch (Exception refused) {
            return name(Errors.forException(refused));
        }
    }

    long logEnd() {
        return log.logEndOffset();
    }

    String copy(int count, int epoch) {
        log.append(Batches.batch(log.logEndOffset(), count, epoch), false);
        return null;
    }

    long logStart() {
        return log.logStartOffset();
    }

    void deleteBefore(long offset) {
        throw new UnsupportedOperationException();
    }

    /** To where the batch begins that holds the offset. */
    void truncate(long offset) {
        for (long[] batch : Logs.batches(log))
            if (batch[2] <= offset && offset <= batch[3])
                offset = batch[2];
        log.truncateTo(offset);
        highWatermark();
    }

    Object fetch(int follower, long brokerEpoch, long offset, long leaderEpoch, long lastEpoch) {
        List<Object> seen = new ArrayList<>();
        manager.fetchMessages(0, follower, 0, 1_000_000, true,
            JavaConverters.asScalaBufferConverter(
                List.of(new Tuple2<>(name, new FetchRequest.PartitionData(offset, 1_000_000)))).asScala(),
            manager.fetchMessages$default$7(),
            new AbstractFunction1<Seq<Tuple2<TopicPartition, FetchPartitionData>>, BoxedUnit>() {
                @Override
                public BoxedUnit apply(Seq<Tuple2<TopicPartition, FetchPartitionData>> answers) {
                    seen.add(shown(JavaConverters.seqAsJavaListConverter(answers).asJava().get(0)._2()));
                    return BoxedUnit.UNIT;
                }
            });
        return seen.get(0);
    }

    private Object shown(FetchPartitionData read) {
        if (read.error() != Errors.NONE)
            return name(read.error());
        List<Object> batches = new ArrayList<>();
        for (LogEntry batch : read.records().shallowEntries())
            batches.add(Arrays.asList(batch.firstOffset(), batch.offset(), 0));
        return Arrays.asList(read.hw(), 0L, null, batches);
    }

    Object epochEnd(long leaderEpoch, int epoch) {
        throw new UnsupportedOperationException();
    }

    /** As KafkaApis answers a replica. */
    Object latest(long leaderEpoch, boolean client) {
        return partition.leaderReplicaIfLocal().isEmpty() ? "NOT_LEADER_OR_FOLLOWER" : (Object) log.logEndOffset();
    }

    void shrink() {
        throw new UnsupportedOperationException();
    }

    void minIsr(int value) {
        throw new UnsupportedOperationException();
    }

    String outcome(long offset) {
        throw new UnsupportedOperationException();
    }

    List<Object> state() {
        return Arrays.asList(partition.leaderReplicaIfLocal().nonEmpty(), partition.getLeaderEpoch(), highWatermark(),
            log.logEndOffset());
    }

    /** Kafka leaves it above the end of a log that was truncated, until the next fetch. */
    private long highWatermark() {
        long known = replica.highWatermark().messageOffset();
        long within = Math.max(log.logStartOffset(), Math.min(known, log.logEndOffset()));
        if (known != within)
            replica.highWatermark_$eq(new LogOffsetMetadata(within, LogOffsetMetadata.UnknownOffsetMetadata().segmentBaseOffset(),
                LogOffsetMetadata.UnknownOffsetMetadata().relativePositionInSegment()));
        return within;
    }
}
