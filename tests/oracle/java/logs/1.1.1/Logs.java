package highwater;

import java.io.File;
import java.util.Map;

import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.server.BrokerTopicStats;
import kafka.server.LogDirFailureChannel;
import kafka.utils.Scheduler;
import scala.collection.immutable.Set$;

/** Logs of 1.1 to 2.6. */
final class Logs {
    static final Scheduler AT_ONCE = Opening.atOnce(Scheduler.class);

    private Logs() { }

    static LogConfig config(Map<String, Object> settings) {
        return new LogConfig(Opening.settings(settings), Set$.MODULE$.<String>empty());
    }

    static Log open(File folder, LogConfig config, long start, long recoveryPoint, boolean clean, Clock clock)
        throws Exception {
        File marker = new File(folder.getParentFile(), Log.CleanShutdownFile());
        if (clean)
            marker.createNewFile();
        try {
            return Log.apply(folder, config, start, recoveryPoint, AT_ONCE, new BrokerTopicStats(), clock,
                Integer.MAX_VALUE, Integer.MAX_VALUE, new LogDirFailureChannel(1));
        } finally {
            marker.delete();
        }
    }
}
