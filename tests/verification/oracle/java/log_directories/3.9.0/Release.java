package highwater;

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set; // from 4.4.0
import java.util.TreeMap;
import java.util.concurrent.ScheduledFuture;

import kafka.log.LogManager; // before 4.4.0
import kafka.log.UnifiedLog; // before 4.0.0
import kafka.server.BrokerTopicStats; // before 4.0.0
import kafka.server.builders.LogManagerBuilder;
import kafka.server.metadata.ConfigRepository; // before 4.0.0
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.ConfigRepository; // from 4.0.0
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager; // from 4.4.0
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog; // from 4.0.0
import org.apache.kafka.storage.log.metrics.BrokerTopicStats; // from 4.0.0
import scala.Option;
import scala.collection.immutable.Map.Map1; // before 4.4.0
import scala.collection.immutable.Set$; // before 4.4.0
import scala.jdk.javaapi.CollectionConverters; // before 4.4.0

/** LogManager since 3.9. */
final class Release {
    private final LogManager manager;
    private final List<UnifiedLog> offline = new ArrayList<>();

    /** What is to be done once is done at once; what LogManager does again and again is for the cases to do. */
    private static final class AtOnce implements Scheduler {
        public void startup() { }

        public void shutdown() { }

        public void resizeThreadPool(int size) { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs <= 0 && !name.startsWith("kafka-"))
                task.run();
            return Opening.atOnce(ScheduledFuture.class);
        }
    }

    Release(List<File> directories, List<File> failed, Clock clock) throws Exception {
        Object topics = Proxy.newProxyInstance(
            ConfigRepository.class.getClassLoader(), new Class<?>[] {ConfigRepository.class}, (proxy, method, given) -> new java.util.Properties());
        manager = new LogManagerBuilder().setLogDirs(directories).setInitialOfflineDirs(failed)
            .setConfigRepository((ConfigRepository) topics).setInitialDefaultConfig(Logs.config(Map.of()))
            .setCleanerConfig(new CleanerConfig(false)).setScheduler(new AtOnce())
            .setBrokerTopicStats(new BrokerTopicStats(false)).setLogDirFailureChannel(new LogDirFailureChannel(9))
            .setTime(clock).build();
    }

    private static TopicPartition name(int partition) {
        return new TopicPartition("t", partition);
    }

    /** The logs are loaded; the broker epoch that the markers had. */
    long start() throws Exception {
        OptionalLong epoch = manager.readBrokerEpochFromCleanShutdownFiles();
        manager.startup(Set$.MODULE$.empty(), log -> false); // before 4.4.0
        manager.startup(Set.of(), log -> false); // from 4.4.0
        return epoch.orElse(-1);
    }

    void stop(long brokerEpoch) throws Exception {
        try {
            manager.shutdown(brokerEpoch);
        } catch (Exception late) { // After all else it unlocks the directories, of which one may have failed.
            if (!(late instanceof ClosedChannelException))
                throw late;
        }
        close(offline);
        unlock();
    }

    /** It ends, and leaves its files as they are. */
    void abandon() throws Exception {
        close(logs().values());
        close(offline);
        unlock();
    }

    private void unlock() throws Exception {
        Field field = LogManager.class.getDeclaredField("dirLocks");
        field.setAccessible(true);
        Object locks = field.get(manager);
        Iterable<?> all = CollectionConverters.asJava((scala.collection.Iterable<?>) locks); // before 4.4.0
        Iterable<?> all = (Iterable<?>) locks; // from 4.4.0
        for (Object lock : all)
            try {
                lock.getClass().getMethod("destroy").invoke(lock);
            } catch (InvocationTargetException gone) { // It is unlocked.
                if (!(gone.getCause() instanceof ClosedChannelException))
                    throw gone;
            }
    }

    private static void close(Iterable<UnifiedLog> logs) {
        for (UnifiedLog log : logs)
            log.closeHandlers(); // before 4.4.0
            log.closeQuietly(); // from 4.4.0
    }

    Map<Integer, UnifiedLog> logs() {
        Map<Integer, UnifiedLog> found = new HashMap<>();
        for (UnifiedLog log : CollectionConverters.asJava(manager.allLogs())) // before 4.4.0
        for (UnifiedLog log : manager.allLogs()) // from 4.4.0
            found.put(log.topicPartition().partition(), log);
        return found;
    }

    void checkpoint() {
        manager.checkpointLogRecoveryOffsets();
        manager.checkpointLogStartOffsets();
    }

    void fail(File directory) {
        for (UnifiedLog log : logs().values())
            if (log.dir().getParentFile().equals(directory))
                offline.add(log);
        manager.handleLogDirFailure(directory.getPath());
    }

    void create(int partition, File directory) throws Exception {
        manager.maybeUpdatePreferredLogDir(name(partition), directory.getPath());
        manager.getOrCreateLog(name(partition), true, false, Option.empty(), Option.empty()); // before 4.0.0
        manager.getOrCreateLog(name(partition), true, false, Optional.empty(), Option.empty()); // from 4.0.0 before 4.4.0
        manager.getOrCreateLog(name(partition), true, false, Optional.empty(), Optional.empty()); // from 4.4.0
    }

    void append(int partition, int count, int epoch, boolean rolls) throws Exception {
        UnifiedLog log = logs().get(partition);
        if (rolls && log.activeSegment().size() > 0)
            log.roll(Option.empty()); // before 4.0.0
            log.roll(Optional.empty()); // from 4.0.0
        log.appendAsFollower(Batches.batch(log.logEndOffset(), count, epoch)); // before 4.0.0
        log.appendAsFollower(Batches.batch(log.logEndOffset(), count, epoch), epoch); // from 4.0.0
    }

    void highWatermark(int partition, long offset) throws Exception {
        logs().get(partition).updateHighWatermark(offset);
    }

    void begin(int partition, long offset) throws Exception {
        UnifiedLog log = logs().get(partition);
        log.maybeIncrementLogStartOffset(Math.min(offset, log.highWatermark()), LogStartOffsetIncrementReason.ClientRecordDeletion);
    }

    private boolean isEmpty(int partition) {
        UnifiedLog log = logs().get(partition);
        return log.logEndOffset() == log.logStartOffset();
    }

    void truncate(int partition, long offset) {
        if (isEmpty(partition))
            return;
        manager.truncateTo(new Map1<>(name(partition), offset), false); // before 4.4.0
        manager.truncateTo(Map.of(name(partition), offset), false); // from 4.4.0
    }

    void truncateFully(int partition, long offset) {
        if (isEmpty(partition))
            return;
        manager.truncateFullyAndStartAt(name(partition), offset, false, Option.empty()); // before 4.0.0
        manager.truncateFullyAndStartAt(name(partition), offset, false, Optional.empty()); // from 4.0.0
    }

    void delete(int partition) {
        UnifiedLog log = logs().get(partition);
        manager.asyncDelete(name(partition), false, true, false);
        offline.add(log);
    }

    /** The broker epoch in a directory's marker, -1 if it has none; null without a marker. */
    static Object marker(File directory) {
        CleanShutdownFileHandler handler = new CleanShutdownFileHandler(directory.getPath());
        return handler.exists() ? handler.read().orElse(-1) : null;
    }

    /** Of each log its directory, recovery point, and what is in it. */
    Map<Integer, Object> shown(List<File> directories) {
        Map<Integer, Object> shown = new TreeMap<>();
        logs().forEach((partition, log) -> {
            List<Object> one = new ArrayList<>();
            one.add(directories.indexOf(log.dir().getParentFile()));
            one.add(log.recoveryPoint());
            one.addAll(Logs.state(log));
            shown.put(partition, one);
        });
        return shown;
    }
}
