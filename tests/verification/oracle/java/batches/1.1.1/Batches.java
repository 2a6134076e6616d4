package highwater;

import java.nio.ByteBuffer;
import java.util.List;

import org.apache.kafka.common.record.CompressionType; // before 3.9.0
import org.apache.kafka.common.compress.Compression; // from 3.9.0
import org.apache.kafka.common.record.MemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.MemoryRecordsBuilder; // before 4.3.0
import org.apache.kafka.common.record.RecordBatch; // before 4.3.0
import org.apache.kafka.common.record.SimpleRecord; // before 4.3.0
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords; // from 4.3.0
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder; // from 4.3.0
import org.apache.kafka.common.record.internal.RecordBatch; // from 4.3.0
import org.apache.kafka.common.record.internal.SimpleRecord; // from 4.3.0

/** Batches since 1.1. */
final class Batches {
    private Batches() { }

    static MemoryRecords batch(long base, int count, int epoch, long producer, short producerEpoch, int sequence) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(256 + 32 * count),
            RecordBatch.CURRENT_MAGIC_VALUE, CompressionType.NONE, TimestampType.CREATE_TIME, base, Clock.START_MS, // before 3.9.0
            RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME, base, Clock.START_MS, // from 3.9.0
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
