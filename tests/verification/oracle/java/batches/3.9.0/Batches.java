package highwater;

import java.nio.ByteBuffer;
import java.util.List;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;

/** Batches of 3.9 to 4.2. */
final class Batches {
    private Batches() { }

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

    static MemoryRecords records(List<Object> batches) {
        return MemoryRecords.readableRecords(Joined.batches(batches));
    }

    static MemoryRecords memory(Object records) {
        return (MemoryRecords) records;
    }
}
