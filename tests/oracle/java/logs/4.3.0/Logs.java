package highwater;

import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Logs of 4.3, and batches for them. */
final class Logs {
    static final Scheduler AT_ONCE = new Scheduler() {
        public void startup() { }

        public void shutdown() { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs <= 0)
                task.run();
            return done();
        }

        public void resizeThreadPool(int newSize) { }
    };

    private Logs() { }

    static ScheduledFuture<?> done() {
        return (ScheduledFuture<?>) Proxy.newProxyInstance(Logs.class.getClassLoader(),
            new Class<?>[] {ScheduledFuture.class},
            (self, method, arguments) -> method.getReturnType() == boolean.class ? Boolean.TRUE : null);
    }

    static LogConfig config(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.putIfAbsent("segment.ms", Long.MAX_VALUE);
        all.putIfAbsent("retention.ms", -1L);
        all.putIfAbsent("file.delete.delay.ms", 0L);
        all.putIfAbsent("segment.index.bytes", 4096);
        return new LogConfig(all);
    }

    static UnifiedLog open(File folder, LogConfig config, long start, long recoveryPoint, boolean clean, Clock clock)
        throws Exception {
        return UnifiedLog.create(folder, config, start, recoveryPoint, AT_ONCE, new BrokerTopicStats(false), clock,
            Integer.MAX_VALUE, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Integer.MAX_VALUE,
            new LogDirFailureChannel(1), clean, Optional.empty(), new ConcurrentHashMap<>(), false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    /** One batch. */
    static MemoryRecords batch(long base, int count, int epoch, long producer, short producerEpoch, int sequence) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(256 + 32 * count),
            RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME, base, Clock.START_MS,
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
