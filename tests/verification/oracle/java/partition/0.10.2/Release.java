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
import kafka.common.NotAssignedReplicaException;
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
    private static Leading leading;
    private static int count;

    private final Clock clock;
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
            return leading.write(data, version);
        }
    }

    Release(File folder, Clock clock, Map<Integer, PartitionSubject.Registration> brokers) throws Exception {
        this.clock = clock;
        leading = new Leading();
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
        leading.fails = !(Boolean) operation.get(1);
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

    String append(int count, boolean acksAll) {
        try {
            partition.appendRecordsToLeader(Batches.batch(0, count, 0), acksAll ? -1 : 1);
            return null;
        } catch (Exception refused) {
            return Leading.name(Errors.forException(refused));
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
        try {
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
        } catch (NotAssignedReplicaException unknown) { // KafkaApis answers it, for all partitions of the fetch.
            return Leading.name(Errors.forException(unknown));
        }
        return seen.get(0);
    }

    private Object shown(FetchPartitionData read) {
        if (read.error() != Errors.NONE)
            return Leading.name(read.error());
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
        if (!Leading.leads(partition))
            return "NOT_LEADER_OR_FOLLOWER";
        return client ? highWatermark() : log.logEndOffset();
    }

    void shrink() {
        partition.maybeShrinkIsr(PartitionSubject.LAG_MS);
    }

    void minIsr(int value) {
        log.config_$eq(Logs.config(Map.of("min.insync.replicas", value)));
    }

    String outcome(long offset) {
        return Leading.outcome(partition, offset);
    }

    List<Object> state() {
        return leading.state(partition, highWatermark(), log.logEndOffset(), clock);
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
