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
import kafka.server.checkpoints.OffsetCheckpointFile; // before 4.0.0
import kafka.server.metadata.ConfigRepository; // before 4.0.0
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.KafkaStorageException;
import org.apache.kafka.common.metadata.PartitionRecord; // before 4.3.0
import org.apache.kafka.common.metadata.TopicRecord; // before 4.3.0
import org.apache.kafka.image.TopicsDelta; // before 4.3.0
import org.apache.kafka.image.TopicsImage; // before 4.3.0
import org.apache.kafka.metadata.ConfigRepository; // from 4.0.0
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile; // from 4.0.0
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
    static final String HIGH_WATERMARKS = "replication-offset-checkpoint";
    private static final int BROKER = 1;
    private static final Uuid TOPIC = new Uuid(1, 1);

    private final LogManager manager;
    private final LogDirFailureChannel failures = new LogDirFailureChannel(9);
    private final Map<File, OffsetCheckpointFile> highWatermarks = new HashMap<>();
    private final List<UnifiedLog> offline = new ArrayList<>();

    /**
     * What is to be done once is done at once; what LogManager does again and again is for the cases to do. Like
     * KafkaScheduler, it does not pass on the exception of a task, such as one that deletes files of a failed directory.
     */
    private static final class AtOnce implements Scheduler {
        public void startup() { }

        public void shutdown() { }

        public void resizeThreadPool(int size) { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs <= 0 && !name.startsWith("kafka-"))
                try {
                    task.run();
                } catch (KafkaStorageException isLogged) { }
            return Opening.atOnce(ScheduledFuture.class);
        }
    }

    Release(List<File> directories, List<File> failed, Clock clock) throws Exception {
        Object topics = Proxy.newProxyInstance(
            ConfigRepository.class.getClassLoader(), new Class<?>[] {ConfigRepository.class}, (proxy, method, given) -> new java.util.Properties());
        manager = new LogManagerBuilder().setLogDirs(directories).setInitialOfflineDirs(failed)
            .setConfigRepository((ConfigRepository) topics).setInitialDefaultConfig(Logs.config(Map.of()))
            .setCleanerConfig(new CleanerConfig(false)).setScheduler(new AtOnce())
            .setBrokerTopicStats(new BrokerTopicStats(false)).setLogDirFailureChannel(failures)
            .setTime(clock).build();
        for (File directory : directories)
            if (!failed.contains(directory))
                highWatermarks.put(directory, new OffsetCheckpointFile(new File(directory, HIGH_WATERMARKS), failures));
    }

    private static TopicPartition name(int partition) {
        return new TopicPartition("t", partition);
    }

    /** The logs are loaded; the broker epoch that the markers had. */
    long start() throws Exception {
        OptionalLong epoch = manager.readBrokerEpochFromCleanShutdownFiles();
        manager.startup(Set$.MODULE$.empty(), Release::isStray); // before 4.4.0
        manager.startup(Set.of(), Release::isStray); // from 4.4.0
        return epoch.orElse(-1);
    }

    /** As BrokerMetadataPublisher says, to which the topic and its partitions are known. */
    private static boolean isStray(UnifiedLog log) {
        TopicsDelta delta = new TopicsDelta(TopicsImage.EMPTY); // before 4.3.0
        delta.replay(new TopicRecord().setName("t").setTopicId(TOPIC)); // before 4.3.0
        delta.replay(new PartitionRecord().setTopicId(TOPIC).setPartitionId(log.topicPartition().partition()) // before 4.3.0
            .setReplicas(List.of(BROKER)).setIsr(List.of(BROKER)).setLeader(BROKER)); // before 4.3.0
        return LogManager.isStrayKraftReplica(BROKER, delta.apply(), log); // before 4.1.0
        return org.apache.kafka.storage.internals.log.LogManager.isStrayKraftReplica(BROKER, delta.apply(), log); // from 4.1.0 before 4.3.0
        return log.topicId().isEmpty() // from 4.3.0
            || org.apache.kafka.storage.internals.log.LogManager.isStrayReplica(List.of(BROKER), BROKER, log); // from 4.3.0
    }

    /** Whether something in a directory could not be read. */
    boolean cannotRead(File directory) {
        return failures.hasOfflineLogDir(directory.getPath());
    }

    /** As Partition.createLog reads the file of a directory, and what it does with it. */
    void loadHighWatermark(int partition) throws Exception {
        UnifiedLog log = logs().get(partition);
        try {
            Map<TopicPartition, Long> known = read(highWatermarks.get(log.dir().getParentFile()));
            log.updateHighWatermark(known.getOrDefault(name(partition), 0L));
        } catch (KafkaStorageException unreadable) {
            if (!cannotRead(log.dir().getParentFile()))
                throw unreadable;
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Map<TopicPartition, Long> read(OffsetCheckpointFile file) {
        return (Map) CollectionConverters.asJava(file.read()); // before 4.0.0
        return file.read(); // from 4.0.0
    }

    /** As ReplicaManager.checkpointHighWatermarks, but that a directory without a log is written, too. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    void writeHighWatermarks() {
        Map<File, Map<TopicPartition, Long>> all = new HashMap<>();
        highWatermarks.keySet().forEach(directory -> all.put(directory, new HashMap<>()));
        for (UnifiedLog log : logs().values())
            all.get(log.dir().getParentFile()).put(log.topicPartition(), log.highWatermark());
        all.forEach((directory, known) ->
            highWatermarks.get(directory).write((scala.collection.Map) CollectionConverters.asScala(known))); // before 4.0.0
            highWatermarks.get(directory).write(known)); // from 4.0.0
    }

    void stop(long brokerEpoch) throws Exception {
        writeHighWatermarks();
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
        writeHighWatermarks();
        manager.checkpointLogRecoveryOffsets();
        manager.checkpointLogStartOffsets();
    }

    void fail(File directory) {
        for (UnifiedLog log : logs().values())
            if (log.dir().getParentFile().equals(directory))
                offline.add(log);
        highWatermarks.remove(directory);
        manager.handleLogDirFailure(directory.getPath());
    }

    void create(int partition, File directory) throws Exception {
        manager.maybeUpdatePreferredLogDir(name(partition), directory.getPath());
        manager.getOrCreateLog(name(partition), true, false, Option.apply(TOPIC), Option.empty()); // before 4.0.0
        manager.getOrCreateLog(name(partition), true, false, Optional.of(TOPIC), Option.empty()); // from 4.0.0 before 4.4.0
        manager.getOrCreateLog(name(partition), true, false, Optional.of(TOPIC), Optional.empty()); // from 4.4.0
        loadHighWatermark(partition);
    }

    void append(int partition, int count, int epoch, boolean rolls, int producer, int sequence) throws Exception {
        UnifiedLog log = logs().get(partition);
        if (rolls && log.activeSegment().size() > 0)
            log.roll(Option.empty()); // before 4.0.0
            log.roll(Optional.empty()); // from 4.0.0
        var batch = Batches.batch(log.logEndOffset(), count, epoch, producer, (short) (producer < 0 ? -1 : 0), sequence);
        log.appendAsFollower(batch); // before 4.0.0
        log.appendAsFollower(batch, epoch); // from 4.0.0
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
        writeHighWatermarks();
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
            Map<Long, Object> producers = new TreeMap<>();
            CollectionConverters.asJava(log.activeProducersWithLastSequence()).forEach((id, last) -> producers.put((Long) id, List.of(id, last))); // before 4.0.0
            log.activeProducersWithLastSequence().forEach((id, last) -> producers.put(id, List.of(id, last))); // from 4.0.0
            one.add(new ArrayList<>(producers.values()));
            shown.put(partition, one);
        });
        return shown;
    }
}
