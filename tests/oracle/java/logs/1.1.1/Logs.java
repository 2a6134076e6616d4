package highwater;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

import kafka.log.Log;
import kafka.log.LogConfig;
import kafka.server.BrokerTopicStats;
import kafka.server.LogDirFailureChannel;
import kafka.utils.Scheduler;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import scala.Function0;
import scala.collection.immutable.Set$;
import scala.runtime.BoxedUnit;

/** Logs of 1.1 and 2.0, and batches for them. */
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
        return new LogConfig(all, Set$.MODULE$.<String>empty());
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

    /** One batch. */
    static MemoryRecords batch(long base, int count, int epoch, long producer, short producerEpoch, int sequence) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(256 + 32 * count),
            RecordBatch.CURRENT_MAGIC_VALUE, CompressionType.NONE, TimestampType.CREATE_TIME, base, Clock.START_MS,
            producer, producerEpoch, sequence, false, epoch);
        for (int number = 0; number < count; number++)
            builder.append(new SimpleRecord(Clock.START_MS, new byte[1]));
        return builder.build();
    }

    static MemoryRecords batch(long base, int count, int epoch) {
        return batch(base, count, epoch, -1L, (short) -1, -1);
    }

    /** Batches, each by its first and last offset and leader epoch. */
    static MemoryRecords records(List<Object> batches) {
        ByteBuffer all = ByteBuffer.allocate(4096 * (1 + batches.size()));
        for (Object each : batches) {
            long base = Subject.offset(Subject.list(each).get(0)), last = Subject.offset(Subject.list(each).get(1));
            all.put(batch(base, (int) (last - base + 1), ((Number) Subject.list(each).get(2)).intValue()).buffer());
        }
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    static MemoryRecords memory(Object records) {
        return (MemoryRecords) records;
    }

    static Optional<Integer> epoch(long value) {
        return value < 0 ? Optional.empty() : Optional.of((int) value);
    }
}
