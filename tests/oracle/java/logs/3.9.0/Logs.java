package highwater;

import java.io.File;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import scala.Option;

/** Logs of 3.9. */
final class Logs {
    private Logs() { }

    static LogConfig config(Map<String, Object> settings) {
        return new LogConfig(Opening.settings(settings));
    }

    static UnifiedLog open(File folder, LogConfig config, long start, long recoveryPoint, boolean clean, Clock clock) {
        return UnifiedLog.apply(folder, config, start, recoveryPoint, Opening.atOnce(Scheduler.class),
            new BrokerTopicStats(false), clock, Integer.MAX_VALUE,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Integer.MAX_VALUE, new LogDirFailureChannel(1),
            clean, Option.<Uuid>empty(), true, new ConcurrentHashMap<>(), false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }
}
