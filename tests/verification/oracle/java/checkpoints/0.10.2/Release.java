package highwater;

import java.io.File;
import java.util.List; // from 1.1.1
import java.util.Map;
import java.util.Properties;

import kafka.log.CleanerConfig;
import kafka.log.LogConfig;
import kafka.log.LogManager;
import kafka.server.BrokerState;
import kafka.server.BrokerTopicStats; // from 1.1.1
import kafka.server.KafkaConfig;
import kafka.server.LogDirFailureChannel; // from 1.1.1
import kafka.utils.Scheduler;
import scala.collection.JavaConverters; // from 1.1.1 before 2.6.0
import scala.jdk.javaapi.CollectionConverters; // from 2.6.0
import scala.collection.immutable.Map$;
import scala.collection.immutable.Set$; // from 1.1.1

/** LogManager up to 2.6. */
final class Release {
    static final boolean KRAFT = false;
    static final boolean HAS_LOG_START = false; // before 1.1.1
    static final boolean HAS_LOG_START = true; // from 1.1.1
    static final Class<?> SCHEDULER = Scheduler.class;

    private Release() { }

    static Properties properties() {
        Properties properties = new Properties();
        properties.setProperty("zookeeper.connect", "localhost");
        return properties;
    }

    static void startLogManager(File folder, KafkaConfig config, Object scheduler) {
        new LogManager(new File[] {folder}, Map$.MODULE$.empty(), new LogConfig(Map.of()), // before 1.1.1
        new LogManager(JavaConverters.asScalaBufferConverter(List.of(folder)).asScala(), JavaConverters.asScalaBufferConverter(List.<File>of()).asScala(), Map$.MODULE$.empty(), // from 1.1.1 before 2.6.0
        new LogManager(CollectionConverters.asScala(List.of(folder)), CollectionConverters.asScala(List.<File>of()), Map$.MODULE$.empty(), // from 2.6.0
            new LogConfig(Map.of(), Set$.MODULE$.empty()), // from 1.1.1
            new CleanerConfig(1, 1 << 22, 0.9, 1 << 20, 1 << 20, 1e9, 1_000, false, "MD5"), 1,
            config.logFlushSchedulerIntervalMs(), config.logFlushOffsetCheckpointIntervalMs(),
            config.logCleanupIntervalMs(), (Scheduler) scheduler, new BrokerState(), new Clock() // before 1.1.1
            config.logFlushStartOffsetCheckpointIntervalMs(), config.logCleanupIntervalMs(), Integer.MAX_VALUE, // from 1.1.1
            (Scheduler) scheduler, new BrokerState(), new BrokerTopicStats(), new LogDirFailureChannel(1), new Clock() // from 1.1.1
        ).startup();
    }
}
