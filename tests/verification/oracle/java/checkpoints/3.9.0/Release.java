package highwater;

import java.io.File;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set; // from 4.4.0

import kafka.server.BrokerTopicStats; // before 4.0.0
import kafka.server.KafkaConfig;
import kafka.server.builders.LogManagerBuilder;
import kafka.server.metadata.ConfigRepository; // before 4.0.0
import org.apache.kafka.metadata.ConfigRepository; // from 4.0.0
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats; // from 4.0.0
import scala.collection.immutable.Set$; // before 4.4.0

/** LogManager since 3.9. */
final class Release {
    static final boolean KRAFT = true;
    static final boolean HAS_LOG_START = true;
    static final Class<?> SCHEDULER = Scheduler.class;

    private Release() { }

    static Properties properties() {
        Properties properties = new Properties();
        properties.setProperty("process.roles", "broker");
        properties.setProperty("node.id", "1");
        properties.setProperty("controller.quorum.voters", "2@localhost:9093");
        properties.setProperty("controller.listener.names", "SSL");
        return properties;
    }

    static void startLogManager(File folder, KafkaConfig config, Object scheduler) { // before 4.4.0
    static void startLogManager(File folder, KafkaConfig config, Object scheduler) throws Exception { // from 4.4.0
        Object topics = Proxy.newProxyInstance(
            ConfigRepository.class.getClassLoader(), new Class<?>[] {ConfigRepository.class}, (proxy, method, given) -> null);
        new LogManagerBuilder().setLogDirs(List.of(folder)).setConfigRepository((ConfigRepository) topics)
            .setInitialDefaultConfig(new LogConfig(Map.of())).setCleanerConfig(new CleanerConfig(false))
            .setFlushCheckMs(config.logFlushSchedulerIntervalMs())
            .setFlushRecoveryOffsetCheckpointMs(config.logFlushOffsetCheckpointIntervalMs())
            .setFlushStartOffsetCheckpointMs(config.logFlushStartOffsetCheckpointIntervalMs())
            .setRetentionCheckMs(config.logCleanupIntervalMs()).setInitialTaskDelayMs(config.logInitialTaskDelayMs())
            .setScheduler((Scheduler) scheduler).setBrokerTopicStats(new BrokerTopicStats(false))
            .setLogDirFailureChannel(new LogDirFailureChannel(1)).setTime(new Clock())
            .build().startup(Set$.MODULE$.empty(), log -> false); // before 4.4.0
            .build().startup(Set.of(), log -> false); // from 4.4.0
    }
}
