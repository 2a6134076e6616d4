package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import kafka.api.ApiVersion$;
import kafka.common.UnexpectedAppendOffsetException;
import kafka.log.AppendOrigin;
import kafka.log.ClientRecordDeletion$;
import kafka.log.Log;
import kafka.log.LogAppendInfo;
import kafka.log.LogSegment;
import kafka.server.epoch.EpochEntry;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.FileLogInputStream.FileChannelRecordBatch;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Log of 2.6. */
final class Release {
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
        log.roll(Option.empty());
    }

    Object lead(int count, int epoch, int producer, int producerEpoch, int sequence) throws Exception {
        long end = log.logEndOffset();
        try {
            LogAppendInfo info = log.appendAsLeader(
                Batches.batch(0, count, epoch, producer, (short) producerEpoch, sequence), epoch,
                AppendOrigin.Client$.MODULE$, ApiVersion$.MODULE$.latestVersion());
            long first = (Long) info.firstOffset().get();
            return first == end ? null : first;
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
            log.truncateFullyAndStartAt(refused.firstOffset());
            log.appendAsFollower(Batches.batch(base, count, epoch));
        }
        return null;
    }

    void truncate(long offset) {
        log.truncateTo(offset);
    }

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

    long start() {
        return log.logStartOffset();
    }

    long end() {
        return log.logEndOffset();
    }

    /** Of each batch its segment, where it begins in there, base and last offset and leader epoch. */
    List<long[]> batches() {
        List<long[]> found = new ArrayList<>();
        for (LogSegment segment : CollectionConverters.asJava(log.logSegments()))
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
        for (EpochEntry entry : CollectionConverters.asJava(log.leaderEpochCache().get().epochEntries()))
            epochs.add(Arrays.asList(entry.epoch(), entry.startOffset()));
        return Arrays.asList(log.logStartOffset(), log.logEndOffset(), log.highWatermark(), epochs, batches);
    }
}
