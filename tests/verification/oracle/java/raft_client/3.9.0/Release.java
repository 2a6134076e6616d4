package org.apache.kafka.raft;

import java.io.File;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;

import highwater.Clock;
import kafka.raft.KafkaMetadataLog; // before 4.3.0
import kafka.raft.MetadataLogConfig; // before 4.0.0
import org.apache.kafka.common.config.AbstractConfig; // from 4.0.0
import org.apache.kafka.common.record.MemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.RecordBatch; // before 4.3.0
import org.apache.kafka.common.record.internal.MemoryRecords; // from 4.3.0
import org.apache.kafka.common.record.internal.RecordBatch; // from 4.3.0
import org.apache.kafka.raft.internals.KafkaRaftLog; // from 4.3.0
import org.apache.kafka.server.common.OffsetAndEpoch; // from 4.1.0
import org.apache.kafka.server.util.Scheduler;

/** The log of a member, and its settings. */
final class Release {
    private static final int RETENTION_MS = 20_000;

    /** Does at once what is due at once, such as writing the file of epochs; files are deleted later, so never here. */
    private static final class AtOnce implements Scheduler {
        public void startup() { }

        public void shutdown() { }

        public void resizeThreadPool(int size) { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (delayMs <= 0 && periodMs <= 0)
                task.run();
            return (ScheduledFuture<?>) Proxy.newProxyInstance(ScheduledFuture.class.getClassLoader(),
                new Class<?>[] {ScheduledFuture.class}, (proxy, method, given) -> true);
        }
    }

    final ReplicatedLog log; // before 4.3.0
    final RaftLog log; // from 4.3.0

    Release(File folder, Clock clock) throws Exception {
        log = KafkaMetadataLog.apply(RaftClientMember.PARTITION, RaftClientMember.TOPIC, folder, clock, new AtOnce(), // before 4.3.0
            new MetadataLogConfig(1 << 20, 1 << 10, 1L << 40, -1L, RETENTION_MS, 1 << 20, 1 << 20, 60_000L, 0)); // before 4.0.0
            new MetadataLogConfig(settings(Map.of("metadata.max.retention.ms", RETENTION_MS), MetadataLogConfig.CONFIG_DEF)), 0); // from 4.0.0 before 4.3.0
        log = KafkaRaftLog.createLog(RaftClientMember.PARTITION, RaftClientMember.TOPIC, folder, clock, new AtOnce(), // from 4.3.0
            new MetadataLogConfig(settings(Map.of("metadata.max.retention.ms", RETENTION_MS), MetadataLogConfig.CONFIG_DEF)), 0); // from 4.3.0
    }

    private static AbstractConfig settings(Map<String, Object> values, org.apache.kafka.common.config.ConfigDef keys) { // from 4.0.0
        return new AbstractConfig(keys, values, false); // from 4.0.0
    } // from 4.0.0

    /** Formatting has written the first voters to the disk. */
    void bootstrap(VoterSet voters) {
        Bytes.write(log.createNewSnapshotUnchecked(new OffsetAndEpoch(0, 0)).get(), 0, Optional.of(voters));
    }

    QuorumConfig config(boolean joins) {
        return new QuorumConfig(5_000, 50, 10_000, 100, 50_000, 0); // before 4.0.0
        Map<String, Object> values = new HashMap<>(); // from 4.0.0
        values.put("controller.quorum.request.timeout.ms", 5_000); // from 4.0.0
        values.put("controller.quorum.retry.backoff.ms", 50); // from 4.0.0
        values.put("controller.quorum.election.timeout.ms", 10_000); // from 4.0.0
        values.put("controller.quorum.election.backoff.max.ms", 100); // from 4.0.0
        values.put("controller.quorum.fetch.timeout.ms", 50_000); // from 4.0.0
        values.put("controller.quorum.append.linger.ms", 0); // from 4.0.0
        values.put("controller.quorum.auto.join.enable", joins); // from 4.2.0
        return new QuorumConfig(settings(values, QuorumConfig.CONFIG_DEF)); // from 4.0.0
    }

    int fetchVersion() {
        return 17; // before 4.0.0
        return 18; // from 4.0.0
    }

    int voteVersion() {
        return 1; // before 4.0.0
        return 2; // from 4.0.0
    }

    void append(MemoryRecords records, int epoch) {
        log.appendAsFollower(records); // before 4.0.0
        log.appendAsFollower(records, epoch); // from 4.0.0
    }

    long start() {
        return log.startOffset();
    }

    long end() {
        return log.endOffset().offset();
    }

    /** The epoch of the record before an offset. */
    int epochAt(long offset) {
        Optional<OffsetAndEpoch> latest = log.latestSnapshotId();
        if (latest.isPresent() && latest.get().offset() == offset)
            return latest.get().epoch();
        int epoch = 0;
        for (RecordBatch batch : log.read(log.startOffset(), Isolation.UNCOMMITTED).records.batches()) // before 4.3.0
        for (RecordBatch batch : log.read(log.startOffset(), Isolation.UNCOMMITTED, Integer.MAX_VALUE).records.batches()) // from 4.3.0
            if (batch.baseOffset() < offset)
                epoch = batch.partitionLeaderEpoch();
        return epoch;
    }

    /** Where the batch begins that holds an offset; the offset, if it is none of the log's. */
    long beginOfBatch(long offset) {
        for (RecordBatch batch : log.read(log.startOffset(), Isolation.UNCOMMITTED).records.batches()) // before 4.3.0
        for (RecordBatch batch : log.read(log.startOffset(), Isolation.UNCOMMITTED, Integer.MAX_VALUE).records.batches()) // from 4.3.0
            if (batch.baseOffset() <= offset && offset <= batch.lastOffset())
                return batch.baseOffset();
        return offset;
    }

    /** Ends and epochs of the first and the last snapshot. */
    List<Object> snapshots() {
        return Arrays.asList(words(log.earliestSnapshotId()), words(log.latestSnapshotId()));
    }

    private static Object words(Optional<OffsetAndEpoch> id) {
        return id.isPresent() ? Arrays.asList(id.get().offset(), (long) id.get().epoch()) : null;
    }

    void close() throws Exception {
        log.close();
    }
}
