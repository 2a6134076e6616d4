package highwater;

import java.io.File;
import java.util.List;
import java.util.Map;

import kafka.common.UnexpectedAppendOffsetException;
import kafka.log.UnifiedLog;
import kafka.server.RequestLocal;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import scala.Option;

/** UnifiedLog of 3.9. */
final class Release extends Appending {
    private final UnifiedLog log;

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
        return log.appendAsLeader(Batches.batch(0, count, epoch, producer, producerEpoch, sequence), epoch,
            AppendOrigin.CLIENT, MetadataVersion.latestProduction(), RequestLocal.NoCaching(), VerificationGuard.SENTINEL)
            .firstOffset();
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
        log.truncateFullyAndStartAt(offset, Option.empty());
    }

    void highWatermark(long offset) throws Exception {
        log.updateHighWatermark(offset);
    }

    long highWatermark() {
        return log.highWatermark();
    }

    void start(long offset) throws Exception {
        log.maybeIncrementLogStartOffset(offset, LogStartOffsetIncrementReason.ClientRecordDeletion);
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
        return Logs.state(log);
    }
}
