package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import kafka.common.UnexpectedAppendOffsetException;
import kafka.log.Log;
import kafka.log.LogSegment;
import kafka.server.epoch.EpochEntry;
import kafka.server.epoch.LeaderEpochFileCache;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.FileLogInputStream.FileChannelRecordBatch;
import scala.Option;
import scala.collection.JavaConverters;

/** Log of 1.1 and 2.0; the high watermark is not its own there. */
final class Release {
    private final Log log;
    private long highWatermark;

    Release(File folder, Clock clock, long start, long recoveryPoint, boolean clean) throws Exception {
        log = Logs.open(folder, Logs.config(Map.of()), start, recoveryPoint, clean, clock);
    }

    void close() {
        log.close();
    }

    void abandon() {
        log.closeHandlers();
    }

    /** An active segment that holds nothing is not rolled, as in Log.maybeRoll. */
    void roll() throws Exception {
        if (log.activeSegment().size() > 0)
            log.roll(0);
    }

    Object lead(int count, int epoch, int producer, int producerEpoch, int sequence) throws Exception {
        long end = log.logEndOffset();
        try {
            Object first = log.appendAsLeader(
                Batches.batch(0, count, epoch, producer, (short) producerEpoch, sequence), epoch, true).firstOffset();
            if (first instanceof Option)
                first = ((Option<?>) first).get();
            return (Long) first == end ? null : first;
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
    }

    /** As Partition.appendRecordsToFollowerOrFutureReplica does it. */
    String copy(long base, int count, int epoch) {
        try {
            log.appendAsFollower(Batches.batch(base, count, epoch));
        } catch (UnexpectedAppendOffsetException refused) {
            long end = log.logEndOffset();
            if (end != log.logStartOffset() || refused.firstOffset() >= end || refused.lastOffset() < end)
                return "refused";
            truncateFully(refused.firstOffset());
            log.appendAsFollower(Batches.batch(base, count, epoch));
        }
        return null;
    }

    void truncate(long offset) {
        log.truncateTo(offset);
        highWatermark = highWatermark();
    }

    void truncateFully(long offset) {
        log.truncateFullyAndStartAt(offset);
        highWatermark = offset;
    }

    void highWatermark(long offset) throws Exception {
        highWatermark = offset;
        highWatermark = highWatermark();
    }

    /** Which offsets may be deleted. */
    long highWatermark() {
        return Math.max(log.logStartOffset(), Math.min(highWatermark, log.logEndOffset()));
    }

    void start(long offset) throws Exception {
        log.maybeIncrementLogStartOffset(offset);
    }

    long start() {
        return log.logStartOffset();
    }

    long end() {
        return log.logEndOffset();
    }

    /** Of each batch its segment, where it begins in there, base and last offset and leader epoch. */
    List<long[]> batches() {
        List<long[]> found = new ArrayList<>();
        for (LogSegment segment : JavaConverters.asJavaIterableConverter(log.logSegments()).asJava())
            for (FileChannelRecordBatch batch : segment.log().batches())
                found.add(new long[] {segment.baseOffset(), batch.position(), batch.baseOffset(), batch.lastOffset(),
                    batch.partitionLeaderEpoch()});
        return found;
    }

    List<Object> state() {
        List<Object> batches = new ArrayList<>();
        for (long[] batch : batches())
            if (batch[3] >= log.logStartOffset())
                batches.add(Arrays.asList(batch[2], batch[3], batch[4]));
        List<Object> epochs = new ArrayList<>();
        LeaderEpochFileCache cache = (LeaderEpochFileCache) log.leaderEpochCache();
        for (EpochEntry entry : JavaConverters.seqAsJavaListConverter(cache.epochEntries()).asJava())
            epochs.add(Arrays.asList(entry.epoch(), entry.startOffset()));
        return Arrays.asList(log.logStartOffset(), log.logEndOffset(), null, epochs, batches);
    }
}
