package highwater;

import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean; // before 4.2.0

import kafka.cluster.Partition;
import kafka.log.LogManager; // before 4.4.0
import kafka.server.BrokerTopicStats; // before 4.0.0
import kafka.server.HostedPartition; // before 4.3.0
import kafka.server.KafkaConfig;
import kafka.server.MetadataCache; // before 4.0.0
import kafka.server.QuotaFactory.QuotaManagers; // before 4.4.0
import kafka.server.ReplicaManager;
import kafka.server.builders.LogManagerBuilder;
import kafka.server.metadata.ConfigRepository; // before 4.0.0
import org.apache.kafka.metadata.ConfigRepository; // from 4.0.0
import org.apache.kafka.metadata.MetadataCache; // from 4.0.0
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.image.LocalReplicaChanges;
import org.apache.kafka.image.TopicsDelta;
import org.apache.kafka.server.DelayedActionQueue; // from 4.0.0
import org.apache.kafka.server.quota.QuotaFactory.QuotaManagers; // from 4.4.0
import org.apache.kafka.server.HostedPartition; // from 4.3.0
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager; // from 4.4.0
import org.apache.kafka.storage.log.metrics.BrokerTopicStats; // from 4.0.0
import scala.Option;
import scala.Tuple2;

/** ReplicaManager, of which what a delta makes of partitions is noted in place of being carried out. */
final class Replicas extends ReplicaManager {
    static final int NODE = 1;

    private final PublisherSubject subject;

    Replicas(PublisherSubject subject) throws Exception {
        super(settings(), new Metrics(), new Clock(), scheduler(), logs(), Option.empty(),
            Made.without(QuotaManagers.class), (MetadataCache) Made.answering(MetadataCache.class), // before 4.0.0
            Made.without(QuotaManagers.class), Made.answering(MetadataCache.class), // from 4.0.0
            new LogDirFailureChannel(1), null, new BrokerTopicStats(false),
            new AtomicBoolean(false), Option.empty(), Option.empty(), Option.empty(), Option.empty(), // before 4.2.0
            Option.empty(), Option.empty(), Option.empty(), () -> -1L, Option.empty(), DirectoryEventHandler.NOOP); // before 4.0.0
            Option.empty(), Option.empty(), Option.empty(), // from 4.0.0 before 4.2.0
            Option.empty(), Option.empty(), Option.empty(), Option.empty(), Option.empty(), Option.empty(), // from 4.2.0
            () -> -1L, Option.empty(), DirectoryEventHandler.NOOP, new DelayedActionQueue()); // from 4.0.0
        this.subject = subject;
    }

    static KafkaConfig settings() {
        Properties properties = new Properties();
        properties.setProperty("process.roles", "broker");
        properties.setProperty("node.id", String.valueOf(NODE));
        properties.setProperty("controller.quorum.voters", "2@localhost:9093");
        properties.setProperty("controller.listener.names", "SSL");
        return new KafkaConfig(properties);
    }

    private static Scheduler scheduler() {
        return Made.answering(Scheduler.class);
    }

    private static LogManager logs() throws Exception {
        return new LogManagerBuilder().setLogDirs(List.of(Folders.next()))
            .setConfigRepository(Made.answering(ConfigRepository.class)).setInitialDefaultConfig(new LogConfig(Map.of()))
            .setCleanerConfig(new CleanerConfig(false)).setScheduler(scheduler())
            .setBrokerTopicStats(new BrokerTopicStats(false)).setLogDirFailureChannel(new LogDirFailureChannel(1))
            .setTime(new Clock()).build();
    }

    @Override
    public void startup() { }

    @Override
    public void startHighWatermarkCheckPointThread() { }

    /** Stopping partitions looks them up; nothing else does here. */
    @Override
    public HostedPartition getPartition(TopicPartition partition) { // before 4.3.0
    public HostedPartition<Partition> getPartition(TopicPartition partition) { // from 4.3.0
        subject.note("delete", partition.toString());
        return super.getPartition(partition);
    }

    @Override
    public Option<Tuple2<Partition, Object>> getOrCreatePartition(TopicPartition partition, TopicsDelta delta, Uuid topic) {
        LocalReplicaChanges changes = delta.localChanges(NODE);
        LocalReplicaChanges.PartitionInfo leads = changes.leaders().get(partition);
        LocalReplicaChanges.PartitionInfo info = leads == null ? changes.followers().get(partition) : leads;
        subject.note(leads == null ? "follow" : "lead", partition.toString(), info.partition().leaderEpoch,
            info.partition().partitionEpoch);
        return Option.empty();
    }
}
