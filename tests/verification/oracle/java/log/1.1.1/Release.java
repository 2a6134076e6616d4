package highwater;

import java.io.File;
import java.util.List;
import java.util.Map;

import kafka.common.UnexpectedAppendOffsetException;
import kafka.log.Log;
import scala.Option;

/** Log of 1.1 and 2.0; the high watermark is not its own there. */
final class Release extends Appending {
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

    @Override
    long append(int count, int epoch, int producer, short producerEpoch, int sequence) throws Exception {
        Object first = log.appendAsLeader(Batches.batch(0, count, epoch, producer, producerEpoch, sequence), epoch, true).firstOffset();
        return (Long) (first instanceof Option ? ((Option<?>) first).get() : first);
    }

    @Override
    long[] follow(long base, int count, int epoch) {
        try {
            log.appendAsFollower(Batches.batch(base, count, epoch));
            return null;
        } catch (UnexpectedAppendOffsetException unexpected) {
            return new long[] {unexpected.firstOffset(), unexpected.lastOffset()};
        }
    }

    void truncate(long offset) {
        log.truncateTo(offset);
        highWatermark = highWatermark();
    }

    @Override
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

    /** Below the high watermark as the replica tells it to the log. */
    void deleteSegments() {
        log.onHighWatermarkIncremented(highWatermark());
        log.deleteOldSegments();
    }

    @Override
    long start() {
        return log.logStartOffset();
    }

    @Override
    long end() {
        return log.logEndOffset();
    }

    List<long[]> batches() {
        return Logs.batches(log);
    }

    List<Object> state() {
        return Logs.state(log, null);
    }
}
