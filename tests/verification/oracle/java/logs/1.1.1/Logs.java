package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.server.BrokerTopicStats;
import kafka.server.LogDirFailureChannel;
import kafka.server.epoch.EpochEntry;
import kafka.server.epoch.LeaderEpochFileCache;
import kafka.utils.Scheduler;
import scala.Option;
import scala.collection.JavaConverters;
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

    /** Of each batch its segment, where it begins in there, base and last offset and leader epoch. */
    static List<long[]> batches(Log log) {
        List<long[]> found = new ArrayList<>();
        for (var segment : JavaConverters.asJavaIterableConverter(log.logSegments()).asJava())
            for (var batch : segment.log().batches())
                found.add(new long[] {segment.baseOffset(), batch.position(), batch.baseOffset(), batch.lastOffset(),
                    batch.partitionLeaderEpoch()});
        return found;
    }

    static List<Object> state(Log log, Object highWatermark) {
        Object cache = log.leaderEpochCache();
        if (cache instanceof Option)
            cache = ((Option<?>) cache).get();
        List<Object> epochs = new ArrayList<>();
        for (EpochEntry entry : JavaConverters.seqAsJavaListConverter(((LeaderEpochFileCache) cache).epochEntries()).asJava())
            epochs.add(Arrays.asList(entry.epoch(), entry.startOffset()));
        return Shown.log(log.logStartOffset(), log.logEndOffset(), highWatermark, epochs, batches(log));
    }
}
