package org.apache.kafka.raft;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Optional;

import highwater.Clock;
import org.apache.kafka.common.record.MemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.UnalignedMemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.internal.MemoryRecords; // from 4.3.0
import org.apache.kafka.common.record.internal.UnalignedMemoryRecords; // from 4.3.0
import org.apache.kafka.raft.internals.StringSerde;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch; // from 4.1.0
import org.apache.kafka.snapshot.RawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;

/** The bytes of a snapshot without records, as a leader has them. */
final class Bytes implements RawSnapshotWriter {
    private final OffsetAndEpoch id;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private boolean frozen;

    private Bytes(OffsetAndEpoch id) {
        this.id = id;
    }

    static MemoryRecords of(OffsetAndEpoch id, long nowMs, Optional<VoterSet> voters) {
        Bytes raw = new Bytes(id);
        write(raw, nowMs, voters);
        return MemoryRecords.readableRecords(ByteBuffer.wrap(raw.bytes.toByteArray()));
    }

    /** A snapshot without records; with voters, under kraft.version 1. */
    static void write(RawSnapshotWriter raw, long nowMs, Optional<VoterSet> voters) {
        RecordsSnapshotWriter<String> writer = new RecordsSnapshotWriter.Builder().setTime(new Clock())
            .setLastContainedLogTimestamp(nowMs).setKraftVersion(voters.isPresent() ? KRaftVersion.KRAFT_VERSION_1 : KRaftVersion.KRAFT_VERSION_0)
            .setVoterSet(voters)
            .setRawSnapshotWriter(raw).build(new StringSerde());
        writer.freeze();
        writer.close();
    }

    public OffsetAndEpoch snapshotId() {
        return id;
    }

    public long sizeInBytes() {
        return bytes.size();
    }

    public void append(MemoryRecords records) {
        append(records.buffer());
    }

    public void append(UnalignedMemoryRecords records) {
        append(records.buffer());
    }

    private void append(ByteBuffer buffer) {
        byte[] part = new byte[buffer.remaining()];
        buffer.duplicate().get(part);
        bytes.write(part, 0, part.length);
    }

    public boolean isFrozen() {
        return frozen;
    }

    public void freeze() {
        frozen = true;
    }

    public void close() { }
}
