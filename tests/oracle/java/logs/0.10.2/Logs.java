package highwater;

import java.io.File;
import java.util.Map;

import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.utils.Scheduler;

/** Logs of 0.10.2. */
final class Logs {
    static final Scheduler AT_ONCE = Opening.atOnce(Scheduler.class);

    private Logs() { }

    static LogConfig config(Map<String, Object> settings) {
        Map<String, Object> all = Opening.settings(settings);
        all.putIfAbsent("index.interval.bytes", 0);
        return new LogConfig(all);
    }

    static Log open(File folder, LogConfig config, long recoveryPoint, boolean clean, Clock clock) throws Exception {
        File marker = new File(folder.getParentFile(), Log.CleanShutdownFile());
        if (clean)
            marker.createNewFile();
        try {
            return new Log(folder, config, recoveryPoint, AT_ONCE, clock);
        } finally {
            marker.delete();
        }
    }
}
