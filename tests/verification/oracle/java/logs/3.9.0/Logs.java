package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional; // from 4.0.0
import java.util.concurrent.ConcurrentHashMap;

import kafka.log.UnifiedLog; // before 4.0.0
import kafka.server.BrokerTopicStats; // before 4.0.0
import org.apache.kafka.common.Uuid; // before 4.0.0
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import scala.Option; // before 4.0.0
import org.apache.kafka.storage.internals.log.UnifiedLog; // from 4.0.0
import org.apache.kafka.storage.log.metrics.BrokerTopicStats; // from 4.0.0

/** Logs since 3.9. */
final class Logs {
    private Logs() { }

    static LogConfig config(Map<String, Object> settings) {
        return new LogConfig(Opening.settings(settings));
    }

    static UnifiedLog open(File folder, LogConfig config, long start, long recoveryPoint, boolean clean, Clock clock) { // before 4.0.0
        return UnifiedLog.apply(folder, config, start, recoveryPoint, Opening.atOnce(Scheduler.class), // before 4.0.0
    static UnifiedLog open(File folder, LogConfig config, long start, long recoveryPoint, boolean clean, Clock clock) // from 4.0.0
        throws Exception { // from 4.0.0
        return UnifiedLog.create(folder, config, start, recoveryPoint, Opening.atOnce(Scheduler.class), // from 4.0.0
            new BrokerTopicStats(false), clock, Integer.MAX_VALUE,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Integer.MAX_VALUE, new LogDirFailureChannel(1),
            clean, Option.<Uuid>empty(), true, new ConcurrentHashMap<>(), false, // before 4.0.0
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER); // before 4.0.0
            clean, Optional.empty(), new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER); // from 4.0.0
    }

    /** Of each batch its segment, where it begins in there, base and last offset and leader epoch. */
    static List<long[]> batches(UnifiedLog log) {
        List<long[]> found = new ArrayList<>();
        for (var segment : log.logSegments())
            for (var batch : segment.log().batches())
                found.add(new long[] {segment.baseOffset(), batch.position(), batch.baseOffset(), batch.lastOffset(),
                    batch.partitionLeaderEpoch()});
        return found;
    }

    static List<Object> state(UnifiedLog log) {
        List<Object> epochs = new ArrayList<>();
        log.leaderEpochCache().get().epochWithOffsets().forEach((epoch, from) -> epochs.add(Arrays.asList(epoch, from))); // before 4.0.0
        log.leaderEpochCache().epochWithOffsets().forEach((epoch, from) -> epochs.add(Arrays.asList(epoch, from))); // from 4.0.0
        return Shown.log(log.logStartOffset(), log.logEndOffset(), log.highWatermark(), epochs, batches(log));
    }
}
