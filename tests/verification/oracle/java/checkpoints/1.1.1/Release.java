package highwater;

import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import kafka.log.CleanerConfig;
import kafka.log.LogConfig;
import kafka.log.LogManager;
import kafka.server.BrokerState;
import kafka.server.BrokerTopicStats;
import kafka.server.KafkaConfig;
import kafka.server.LogDirFailureChannel;
import kafka.utils.Scheduler;
import scala.collection.JavaConverters;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Set$;

/** LogManager of 1.1 and 2.0. */
final class Release {
    static final boolean KRAFT = false;
    static final boolean HAS_LOG_START = true;
    static final Class<?> SCHEDULER = Scheduler.class;

    private Release() { }

    static Properties properties() {
        Properties properties = new Properties();
        properties.setProperty("zookeeper.connect", "localhost");
        return properties;
    }

    static void startLogManager(File folder, KafkaConfig config, Object scheduler) {
        new LogManager(JavaConverters.asScalaBufferConverter(List.of(folder)).asScala(), JavaConverters.asScalaBufferConverter(List.<File>of()).asScala(), Map$.MODULE$.empty(),
            new LogConfig(Map.of(), Set$.MODULE$.empty()),
            new CleanerConfig(1, 1 << 22, 0.9, 1 << 20, 1 << 20, 1e9, 1_000, false, "MD5"), 1,
            config.logFlushSchedulerIntervalMs(), config.logFlushOffsetCheckpointIntervalMs(),
            config.logFlushStartOffsetCheckpointIntervalMs(), config.logCleanupIntervalMs(), Integer.MAX_VALUE,
            (Scheduler) scheduler, new BrokerState(), new BrokerTopicStats(), new LogDirFailureChannel(1), new Clock()
        ).startup();
    }
}
