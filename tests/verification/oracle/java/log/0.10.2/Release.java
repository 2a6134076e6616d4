package highwater;

import java.io.File;
import java.util.List;
import java.util.Map;

import kafka.log.Log;

/** Log of 0.10.2: it knows of no epochs and no producers, begins where its first segment does, and has no high watermark. */
final class Release {
    private final Log log;

    Release(File folder, Clock clock, long start, long recoveryPoint, boolean clean) throws Exception {
        log = Logs.open(folder, Logs.config(Map.of()), recoveryPoint, clean, clock);
    }

    void close() {
        log.close();
    }

    void abandon() throws Exception {
        Logs.abandon(log);
    }

    /** An active segment that holds nothing is not rolled, as in Log.maybeRoll. */
    void roll() {
        if (log.activeSegment().size() > 0)
            log.roll(0);
    }

    Object lead(int count, int epoch, int producer, int producerEpoch, int sequence) {
        log.append(Batches.batch(0, count, epoch), true);
        return null;
    }

    String copy(long base, int count, int epoch) {
        try {
            log.append(Batches.batch(base, count, epoch), false);
            return null;
        } catch (IllegalArgumentException refused) {
            return "refused";
        }
    }

    void truncate(long offset) {
        log.truncateTo(offset);
    }

    void truncateFully(long offset) {
        log.truncateFullyAndStartAt(offset);
    }

    void highWatermark(long offset) { }

    long highWatermark() {
        return 0;
    }

    void start(long offset) {
        throw new UnsupportedOperationException();
    }

    void deleteSegments() {
        throw new UnsupportedOperationException();
    }

    long start() {
        return log.logStartOffset();
    }

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
