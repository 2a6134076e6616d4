package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import kafka.log.Log;
import kafka.log.LogSegment;
import org.apache.kafka.common.record.FileLogInputStream.FileChannelLogEntry;
import scala.collection.JavaConverters;

/** Log of 0.10.2: it knows of no epochs and no producers, begins where its first segment does, and has no high watermark. */
final class Release {
    private final Log log;

    Release(File folder, Clock clock, long start, long recoveryPoint, boolean clean) throws Exception {
        log = Logs.open(folder, Logs.config(Map.of()), recoveryPoint, clean, clock);
    }

    void close() {
        log.close();
    }

    /** Its indexes stay as long as they were made. */
    void abandon() throws Exception {
        for (LogSegment segment : segments())
            segment.log().channel().close();
    }

    private Iterable<LogSegment> segments() {
        return JavaConverters.asJavaIterableConverter(log.logSegments()).asJava();
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

    long start() {
        return log.logStartOffset();
    }

    long end() {
        return log.logEndOffset();
    }

    /** Of each batch its segment, where it begins in there, base and last offset. */
    List<long[]> batches() {
        List<long[]> found = new ArrayList<>();
        for (LogSegment segment : segments())
            for (FileChannelLogEntry batch : segment.log().shallowEntries())
                found.add(new long[] {segment.baseOffset(), batch.position(), batch.firstOffset(), batch.offset()});
        return found;
    }

    List<Object> state() {
        List<Object> batches = new ArrayList<>();
        for (long[] batch : batches())
            batches.add(Arrays.asList(batch[2], batch[3]));
        return Arrays.asList(log.logStartOffset(), log.logEndOffset(), null, null, batches);
    }
}
