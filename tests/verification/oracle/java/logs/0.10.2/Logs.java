package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.log.LogSegment;
import kafka.utils.Scheduler;
import org.apache.kafka.common.record.FileLogInputStream.FileChannelLogEntry;
import scala.collection.JavaConverters;

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

    private static Iterable<LogSegment> segments(Log log) {
        return JavaConverters.asJavaIterableConverter(log.logSegments()).asJava();
    }

    /** Its indexes stay as long as they were made. */
    static void abandon(Log log) throws Exception {
        for (LogSegment segment : segments(log))
            segment.log().channel().close();
    }

    /** Of each batch its segment, where it begins in there, base and last offset. */
    static List<long[]> batches(Log log) {
        List<long[]> found = new ArrayList<>();
        for (LogSegment segment : segments(log))
            for (FileChannelLogEntry batch : segment.log().shallowEntries())
                found.add(new long[] {segment.baseOffset(), batch.position(), batch.firstOffset(), batch.offset()});
        return found;
    }

    static List<Object> state(Log log, Object highWatermark) {
        return Shown.log(log.logStartOffset(), log.logEndOffset(), highWatermark, null, batches(log));
    }
}
