package highwater;

import java.io.File;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;

import kafka.cluster.Partition;
import kafka.cluster.Replica;
import kafka.log.CleanerConfig;
import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.log.LogManager;
import kafka.server.BrokerState;
import kafka.server.BrokerTopicStats;
import kafka.server.DelayedOperation;
import kafka.server.DelayedOperationPurgatory;
import kafka.server.KafkaConfig;
import kafka.server.LogDirFailureChannel;
import kafka.server.LogOffsetMetadata;
import kafka.server.MetadataCache;
import kafka.server.QuotaFactory.QuotaManagers;
import kafka.server.QuotaType.FollowerReplication$;
import kafka.server.ReplicaManager;
import kafka.server.ReplicationQuotaManager;
import kafka.server.ReplicationQuotaManagerConfig;
import kafka.utils.timer.SystemTimer;
import kafka.zk.KafkaZkClient;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import scala.Function3;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** A broker of 1.1 or 2.0: a ReplicaManager with one partition, and a ZooKeeper that takes what it is told. */
final class Broker {
    static final TopicPartition NAME = new TopicPartition("t", 0);
    static final Metrics METRICS = new Metrics();

    final KafkaConfig config;
    final ReplicaManager manager;
    final Partition partition;
    final Log log;
    final Replica replica;
    final Leading leading = new Leading();
    private final LogManager logs;

    private final class ZooKeeper extends KafkaZkClient {
        ZooKeeper(Clock clock) {
            super(null, false, clock);
        }

        @Override
        public Tuple2<Object, Object> conditionalUpdatePath(String path, byte[] data, int version,
            Option<Function3<KafkaZkClient, String, byte[], Tuple2<Object, Object>>> check) {
            return leading.write(new String(data, StandardCharsets.UTF_8), version);
        }

        @Override
        public Properties getEntityConfigs(String type, String name) {
            return new Properties();
        }
    }

    Broker(int id, File folder, Clock clock) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("broker.id", id);
        settings.put("zookeeper.connect", "none");
        settings.put("log.dirs", folder.getParent());
        settings.put("replica.lag.time.max.ms", PartitionSubject.LAG_MS);
        settings.put("replica.fetch.backoff.ms", 0);
        config = new KafkaConfig(settings);
        LogConfig logConfig = Logs.config(Map.of("min.insync.replicas", 1));
        BrokerTopicStats stats = new BrokerTopicStats();
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        logs = new LogManager(seq(List.of(folder.getParentFile())), seq(List.of()),
            JavaConverters.mapAsScalaMapConverter(Collections.<String, LogConfig>emptyMap()).asScala(), logConfig,
            new CleanerConfig(1, 1 << 20, 0.9, 1 << 20, 1 << 20, Double.MAX_VALUE, 15_000, false, "MD5"), 1,
            Long.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE, Integer.MAX_VALUE, Logs.AT_ONCE,
            new BrokerState(), stats, failures, clock);
        manager = new ReplicaManager(config, METRICS, clock, new ZooKeeper(clock), Logs.AT_ONCE, logs,
            new AtomicBoolean(false), quotas(clock), stats, new MetadataCache(id), failures, purgatory(id), purgatory(id),
            purgatory(id), Option.empty());
        partition = manager.getOrCreatePartition(NAME);
        log = logs.getOrCreateLog(NAME, logConfig, true, false);
        replica = new Replica(id, NAME, clock, 0, new Some<>(log));
        partition.addReplicaIfNotExists(replica);
    }

    static ReplicationQuotaManager quota(Clock clock) {
        return new ReplicationQuotaManager(new ReplicationQuotaManagerConfig(Long.MAX_VALUE, 11, 1), METRICS,
            FollowerReplication$.MODULE$, clock);
    }

    /** 2.0 has one thing more in it than 1.1. */
    private static QuotaManagers quotas(Clock clock) {
        ReplicationQuotaManager quota = quota(clock);
        Constructor<?> made = QuotaManagers.class.getConstructors()[0];
        Object[] parts = {null, null, null, quota, quota, quota, Option.empty()};
        try {
            return (QuotaManagers) made.newInstance(Arrays.copyOf(parts, made.getParameterCount()));
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static <T extends DelayedOperation> DelayedOperationPurgatory<T> purgatory(int id) {
        return new DelayedOperationPurgatory<>("none", new SystemTimer("none", 1, 20, 0), id, 1000, false, false);
    }

    static <T> Seq<T> seq(List<T> list) {
        return JavaConverters.asScalaBufferConverter(list).asScala();
    }

    /** Kafka leaves it above the end of a log that was truncated, until the next fetch. */
    long highWatermark() {
        long known = replica.highWatermark().messageOffset();
        long within = Math.max(log.logStartOffset(), Math.min(known, log.logEndOffset()));
        if (known != within)
            highWatermark(within);
        return within;
    }

    void highWatermark(long offset) {
        replica.highWatermark_$eq(new LogOffsetMetadata(offset, LogOffsetMetadata.UnknownOffsetMetadata().segmentBaseOffset(),
            LogOffsetMetadata.UnknownOffsetMetadata().relativePositionInSegment()));
    }

    void close() {
        logs.shutdown();
    }
}
