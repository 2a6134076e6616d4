package highwater;

import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.LogEntry;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;

/** Compressed sets of 0.10.2, of which each is a batch. */
final class Batches {
    private Batches() { }

    /** It knows of no epoch. */
    static MemoryRecords batch(long base, int count, int epoch) {
        List<LogEntry> entries = new ArrayList<>();
        for (int number = 0; number < count; number++)
            entries.add(LogEntry.create(base + number, Record.create(Record.CURRENT_MAGIC_VALUE, Clock.START_MS, new byte[1])));
        return MemoryRecords.withLogEntries(CompressionType.GZIP, entries);
    }

    static MemoryRecords records(List<Object> batches) {
        return MemoryRecords.readableRecords(Joined.batches(batches));
    }
}
