package highwater;

import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.Optional; // from 4.0.0

import kafka.api.ApiVersion$; // from 2.6.0 before 3.9.0
import kafka.common.UnexpectedAppendOffsetException; // before 4.0.0
import kafka.log.AppendOrigin; // from 2.6.0 before 3.9.0
import kafka.log.ClientRecordDeletion$; // from 2.6.0 before 3.9.0
import kafka.log.Log; // before 3.9.0
import kafka.log.UnifiedLog; // from 3.9.0 before 4.0.0
import kafka.server.RequestLocal; // from 3.9.0 before 4.0.0
import org.apache.kafka.server.common.MetadataVersion; // from 3.9.0 before 4.0.0
import org.apache.kafka.storage.internals.log.AppendOrigin; // from 3.9.0 before 4.0.0
import org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException; // from 4.0.0
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason; // from 3.9.0
import org.apache.kafka.storage.internals.log.VerificationGuard; // from 3.9.0 before 4.0.0
import scala.Option; // before 4.0.0
import org.apache.kafka.storage.internals.log.UnifiedLog; // from 4.0.0

/** Log since 1.1, UnifiedLog since 3.9; the high watermark is not its own up to 2.0. */
final class Release extends Appending {
    private final Log log; // before 3.9.0
    private final UnifiedLog log; // from 3.9.0
    private long highWatermark; // before 2.6.0

    Release(File folder, Clock clock, long start, long recoveryPoint, boolean clean) throws Exception {
        log = Logs.open(folder, Logs.config(Map.of()), start, recoveryPoint, clean, clock);
    }

    void close() {
        log.prepareActiveSegmentForClose(); // from 4.4.0
        log.close();
    }

    void abandon() {
        log.closeHandlers(); // before 4.4.0
        log.closeQuietly(); // from 4.4.0
    }

    /** An active segment that holds nothing is not rolled, as in Log.maybeRoll. */ // before 2.6.0
    void roll() throws Exception {
        if (log.activeSegment().size() > 0)
            log.roll(0); // before 2.6.0
            log.roll(Option.empty()); // from 2.6.0 before 4.0.0
            log.roll(Optional.empty()); // from 4.0.0
    }

    @Override
    long append(int count, int epoch, int producer, short producerEpoch, int sequence) throws Exception {
        Object first = log.appendAsLeader(Batches.batch(0, count, epoch, producer, producerEpoch, sequence), epoch, true).firstOffset(); // before 2.6.0
        return (Long) (first instanceof Option ? ((Option<?>) first).get() : first); // before 2.6.0
        return (Long) log.appendAsLeader(Batches.batch(0, count, epoch, producer, producerEpoch, sequence), epoch, // from 2.6.0 before 3.9.0
            AppendOrigin.Client$.MODULE$, ApiVersion$.MODULE$.latestVersion()).firstOffset().get(); // from 2.6.0 before 3.9.0
        return log.appendAsLeader(Batches.batch(0, count, epoch, producer, producerEpoch, sequence), epoch, // from 3.9.0 before 4.0.0
            AppendOrigin.CLIENT, MetadataVersion.latestProduction(), RequestLocal.NoCaching(), VerificationGuard.SENTINEL) // from 3.9.0 before 4.0.0
            .firstOffset(); // from 3.9.0 before 4.0.0
        return log.appendAsLeader(Batches.batch(0, count, epoch, producer, producerEpoch, sequence), epoch).firstOffset(); // from 4.0.0
    }

    @Override
    long[] follow(long base, int count, int epoch) {
        try {
            log.appendAsFollower(Batches.batch(base, count, epoch)); // before 4.0.0
            log.appendAsFollower(Batches.batch(base, count, epoch), epoch); // from 4.0.0
            return null;
        } catch (UnexpectedAppendOffsetException unexpected) {
            return new long[] {unexpected.firstOffset(), unexpected.lastOffset()}; // before 4.0.0
            return new long[] {unexpected.firstOffset, unexpected.lastOffset}; // from 4.0.0
        }
    }

    void truncate(long offset) {
        log.truncateTo(offset);
        highWatermark = highWatermark(); // before 2.6.0
    }

    @Override
    void truncateFully(long offset) {
        log.truncateFullyAndStartAt(offset); // before 3.9.0
        log.truncateFullyAndStartAt(offset, Option.empty()); // from 3.9.0 before 4.0.0
        log.truncateFullyAndStartAt(offset, Optional.empty()); // from 4.0.0
        highWatermark = offset; // before 2.6.0
    }

    void highWatermark(long offset) throws Exception {
        highWatermark = offset; // before 2.6.0
        highWatermark = highWatermark(); // before 2.6.0
        log.updateHighWatermark(offset); // from 2.6.0
    }

    /** Which offsets may be deleted. */ // before 2.6.0
    long highWatermark() {
        return Math.max(log.logStartOffset(), Math.min(highWatermark, log.logEndOffset())); // before 2.6.0
        return log.highWatermark(); // from 2.6.0
    }

    void start(long offset) throws Exception {
        log.maybeIncrementLogStartOffset(offset); // before 2.6.0
        log.maybeIncrementLogStartOffset(offset, ClientRecordDeletion$.MODULE$); // from 2.6.0 before 3.9.0
        log.maybeIncrementLogStartOffset(offset, LogStartOffsetIncrementReason.ClientRecordDeletion); // from 3.9.0
    }

    /** Below the high watermark as the replica tells it to the log. */ // before 2.6.0
    void deleteSegments() { // before 2.6.0
        log.onHighWatermarkIncremented(highWatermark()); // before 2.6.0
    void deleteSegments() throws Exception { // from 2.6.0
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
        return Logs.state(log, null); // before 2.6.0
        return Logs.state(log, log.highWatermark()); // from 2.6.0 before 3.9.0
        return Logs.state(log); // from 3.9.0
    }
}
