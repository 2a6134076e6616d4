package highwater;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.utils.Scheduler;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.LogEntry;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import scala.Function0;
import scala.runtime.BoxedUnit;

/** Logs of 0.10.2, and compressed sets for them, of which each is a batch. */
final class Logs {
    static final Scheduler AT_ONCE = new Scheduler() {
        public void startup() { }

        public void shutdown() { }

        public boolean isStarted() {
            return true;
        }

        public void schedule(String name, Function0<BoxedUnit> task, long delay, long period, TimeUnit unit) {
            if (period <= 0)
                task.apply();
        }

        public long schedule$default$3() {
            return 0;
        }

        public long schedule$default$4() {
            return -1;
        }

        public TimeUnit schedule$default$5() {
            return TimeUnit.MILLISECONDS;
        }
    };

    private Logs() { }

    static LogConfig config(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.putIfAbsent("segment.ms", Long.MAX_VALUE);
        all.putIfAbsent("retention.ms", -1L);
        all.putIfAbsent("file.delete.delay.ms", 0L);
        all.putIfAbsent("segment.index.bytes", 4096);
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

    /** Batches, each by its first and last offset. */
    static MemoryRecords records(List<Object> batches) {
        ByteBuffer all = ByteBuffer.allocate(4096 * (1 + batches.size()));
        for (Object each : batches) {
            long base = Subject.offset(Subject.list(each).get(0)), last = Subject.offset(Subject.list(each).get(1));
            all.put(batch(base, (int) (last - base + 1)).buffer());
        }
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    /** One batch. */
    static MemoryRecords batch(long base, int count) {
        List<LogEntry> entries = new ArrayList<>();
        for (int number = 0; number < count; number++)
            entries.add(LogEntry.create(base + number, Record.create(Record.CURRENT_MAGIC_VALUE, Clock.START_MS, new byte[1])));
        return MemoryRecords.withLogEntries(CompressionType.GZIP, entries);
    }
}
