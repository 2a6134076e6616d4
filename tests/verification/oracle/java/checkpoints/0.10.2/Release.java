package highwater;

import java.io.File;
import java.util.Map;
import java.util.Properties;

import kafka.log.CleanerConfig;
import kafka.log.LogConfig;
import kafka.log.LogManager;
import kafka.server.BrokerState;
import kafka.server.KafkaConfig;
import kafka.utils.Scheduler;
import scala.collection.immutable.Map$;

/** LogManager of 0.10.2. */
final class Release {
    static final boolean KRAFT = false;
    static final boolean HAS_LOG_START = false;
    static final Class<?> SCHEDULER = Scheduler.class;

    private Release() { }

    static Properties properties() {
        Properties properties = new Properties();
        properties.setProperty("zookeeper.connect", "localhost");
        return properties;
    }

    static void startLogManager(File folder, KafkaConfig config, Object scheduler) {
        new LogManager(new File[] {folder}, Map$.MODULE$.empty(), new LogConfig(Map.of()),
            new CleanerConfig(1, 1 << 22, 0.9, 1 << 20, 1 << 20, 1e9, 1_000, false, "MD5"), 1,
            config.logFlushSchedulerIntervalMs(), config.logFlushOffsetCheckpointIntervalMs(),
            config.logCleanupIntervalMs(), (Scheduler) scheduler, new BrokerState(), new Clock()
        ).startup();
    }
}
