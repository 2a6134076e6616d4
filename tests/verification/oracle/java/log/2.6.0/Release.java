package highwater;

import java.io.File;
import java.util.List;
import java.util.Map;

import kafka.api.ApiVersion$;
import kafka.common.UnexpectedAppendOffsetException;
import kafka.log.AppendOrigin;
import kafka.log.ClientRecordDeletion$;
import kafka.log.Log;
import scala.Option;

/** Log of 2.6. */
final class Release extends Appending {
    private final Log log;

    Release(File folder, Clock clock, long start, long recoveryPoint, boolean clean) throws Exception {
        log = Logs.open(folder, Logs.config(Map.of()), start, recoveryPoint, clean, clock);
    }

    void close() {
        log.close();
    }

    void abandon() {
        log.closeHandlers();
    }

    void roll() throws Exception {
        if (log.activeSegment().size() > 0)
            log.roll(Option.empty());
    }

    @Override
    long append(int count, int epoch, int producer, short producerEpoch, int sequence) throws Exception {
        return (Long) log.appendAsLeader(Batches.batch(0, count, epoch, producer, producerEpoch, sequence), epoch,
            AppendOrigin.Client$.MODULE$, ApiVersion$.MODULE$.latestVersion()).firstOffset().get();
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
    }

    @Override
    void truncateFully(long offset) {
        log.truncateFullyAndStartAt(offset);
    }

    void highWatermark(long offset) throws Exception {
        log.updateHighWatermark(offset);
    }

    long highWatermark() {
        return log.highWatermark();
    }

    void start(long offset) throws Exception {
        log.maybeIncrementLogStartOffset(offset, ClientRecordDeletion$.MODULE$);
    }

    void deleteSegments() throws Exception {
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
        return Logs.state(log, log.highWatermark());
    }
}
