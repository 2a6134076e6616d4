package highwater;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.atomic.AtomicBoolean; // before 4.2.0

import kafka.api.LeaderAndIsr; // before 4.0.0
import kafka.cluster.BrokerEndPoint; // before 4.1.0
import kafka.cluster.Partition;
import kafka.log.LogManager; // before 4.4.0
import kafka.log.UnifiedLog; // before 4.0.0
import kafka.server.AbstractFetcherThread;
import kafka.server.AbstractFetcherThread.ReplicaFetch; // before 4.1.0
import kafka.server.AbstractFetcherThread.ResultWithPartitions; // before 4.1.0
import kafka.server.AlterPartitionManager; // before 4.4.0
import kafka.server.BrokerTopicStats; // before 4.0.0
import kafka.server.DelayedOperationPurgatory; // before 4.0.0
import kafka.server.HostedPartition; // before 4.3.0
import kafka.server.KafkaConfig;
import kafka.server.LeaderEndPoint; // before 4.1.0
import kafka.server.PartitionFetchState; // before 4.1.0
import kafka.server.QuotaFactory.QuotaManagers; // before 4.4.0
import kafka.server.ReplicaAlterLogDirsManager;
import kafka.server.ReplicaFetcherManager;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import kafka.server.ReplicaQuota; // before 4.4.0
import kafka.server.ReplicationQuotaManager; // before 4.4.0
import kafka.server.RequestLocal; // before 4.0.0
import kafka.server.builders.LogManagerBuilder;
import kafka.server.metadata.BrokerMetadataPublisher;
import kafka.server.metadata.ConfigRepository; // before 4.0.0
import kafka.server.metadata.DynamicConfigPublisher;
import kafka.server.metadata.KRaftMetadataCache; // before 4.3.0
import org.apache.kafka.common.TopicIdPartition; // before 4.0.0
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.RecordBatch; // before 4.0.0
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.ConfigRepository; // from 4.0.0
import org.apache.kafka.metadata.KRaftMetadataCache; // from 4.3.0
import org.apache.kafka.metadata.LeaderAndIsr; // from 4.0.0
import org.apache.kafka.server.DelayedActionQueue; // from 4.0.0
import org.apache.kafka.server.HostedPartition; // from 4.3.0
import org.apache.kafka.server.LeaderEndPoint; // from 4.1.0
import org.apache.kafka.server.PartitionFetchState; // from 4.1.0
import org.apache.kafka.server.ReplicaFetch; // from 4.1.0
import org.apache.kafka.server.ResultWithPartitions; // from 4.1.0
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.TopicIdPartition; // from 4.0.0
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.server.network.BrokerEndPoint; // from 4.1.0
import org.apache.kafka.server.partition.AlterPartitionManager; // from 4.4.0
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory; // from 4.0.0
import org.apache.kafka.server.quota.QuotaFactory.QuotaManagers; // from 4.4.0
import org.apache.kafka.server.quota.ReplicaQuota; // from 4.4.0
import org.apache.kafka.server.quota.ReplicationQuotaManager; // from 4.4.0
import org.apache.kafka.server.storage.log.FetchIsolation; // from 4.0.0
import org.apache.kafka.server.storage.log.FetchParams; // from 4.0.0
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.storage.internals.log.AppendOrigin; // before 4.0.0
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.FetchIsolation; // before 4.0.0
import org.apache.kafka.storage.internals.log.FetchParams; // before 4.0.0
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager; // from 4.4.0
import org.apache.kafka.storage.internals.log.LogReadInfo; // before 4.0.0
import org.apache.kafka.storage.internals.log.UnifiedLog; // from 4.0.0
import org.apache.kafka.storage.internals.log.VerificationGuard; // before 4.0.0
import org.apache.kafka.storage.log.metrics.BrokerTopicStats; // from 4.0.0
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** A process of broker 1 since 3.9: its logs, replicas and metadata. Its fetchers run when they are told to. */
final class HostedBroker {
    private static final long BROKER_EPOCH = 1;

    private final List<UnifiedLog> offline = new ArrayList<>();
    private final LogDirFailureChannel failures = new LogDirFailureChannel(9);
    private final ReplicaManagerSubject subject;
    private final Clock clock;
    private final KafkaConfig config;
    private final BrokerTopicStats stats = new BrokerTopicStats(false);
    private final LogManager logs;
    private final KRaftMetadataCache metadata = new KRaftMetadataCache(ReplicaManagerSubject.NODE, () -> KRaftVersion.KRAFT_VERSION_1);
    private final Replicas replicas;
    private final BrokerMetadataPublisher publisher;
    private final Map<Integer, Following> threads = new HashMap<>();
    private long nextCheckpointMs = -1;
    private Answer answer;

    /** What a leader has for a partition. */
    private record Answer(TopicPartition name, int count, boolean isCommitted) { }

    /** What is to be done once is done at once. The task that writes high watermarks is due when the clock says so. */
    private final class Tasks implements Scheduler {
        public void startup() { }

        public void shutdown() { }

        public void resizeThreadPool(int size) { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (name.equals("highwatermark-checkpoint")) {
                task.run();
                nextCheckpointMs = clock.nowMs + periodMs;
            } else if (periodMs <= 0 && !name.startsWith("kafka-")) {
                task.run();
            }
            return Opening.atOnce(ScheduledFuture.class);
        }
    }

    private static final class NoTimer implements Timer {
        public void add(TimerTask task) { }

        public boolean advanceClock(long ms) {
            return false;
        }

        public int size() {
            return 0;
        }

        public void close() { }
    }

    private final class Replicas extends ReplicaManager {
        Replicas() {
            super(config, new Metrics(), clock, new Tasks(), logs, Option.empty(),
                Made.without(QuotaManagers.class), metadata, failures, isr(), stats,
                new AtomicBoolean(false), Option.empty(), // before 4.0.0
                new AtomicBoolean(false), // from 4.0.0 before 4.2.0
                purgatory("Produce"), purgatory("Fetch"), purgatory("DeleteRecords"),
                purgatory("ElectLeader"), // before 4.0.0
                purgatory("RemoteFetch"),
                purgatory("RemoteListOffsets"), purgatory("ShareFetch"), // from 4.0.0
                Option.empty(), // before 4.2.0
                () -> BROKER_EPOCH, Option.empty(), directoryEvents() // before 4.0.0
                () -> BROKER_EPOCH, Option.empty(), directoryEvents(), new DelayedActionQueue() // from 4.0.0
            );
        }

        @Override
        public void startup() { }

        @Override
        public ReplicaFetcherManager createReplicaFetcherManager(Metrics metrics, Time time,
            Option<String> prefix, // before 4.2.0
            ReplicationQuotaManager quota) {
            return new Fetchers(this, metrics, time, quota);
        }

        @Override
        public ReplicaAlterLogDirsManager createReplicaAlterLogDirsManager(ReplicationQuotaManager quota, BrokerTopicStats stats) {
            return new ReplicaAlterLogDirsManager(config, this, quota, stats, DirectoryEventHandler.NOOP);
        }
    }

    private final class Fetchers extends ReplicaFetcherManager {
        private final ReplicaManager manager;

        Fetchers(ReplicaManager manager, Metrics metrics, Time time, ReplicationQuotaManager quota) {
            super(config, manager, metrics, time,
                Option.empty(), // before 4.2.0
                quota, () -> MetadataVersion.latestProduction(), () -> BROKER_EPOCH);
            this.manager = manager;
        }

        @Override
        public ReplicaFetcherThread createFetcherThread(int number, BrokerEndPoint source) {
            return new Following(source, manager, failedPartitions());
        }
    }

    /** A fetcher that is no running thread. */
    private final class Following extends ReplicaFetcherThread {
        Following(BrokerEndPoint source, ReplicaManager manager, kafka.server.FailedPartitions failed) {
            super("fetcher-" + source.id(), new Leader(source), config, failed, manager, quota(), // before 4.0.0
                "", () -> MetadataVersion.latestProduction()); // before 4.0.0
            super("fetcher-" + source.id(), new Leader(source), config, failed, manager, quota(), ""); // from 4.0.0
        }

        @Override
        public void start() { }
    }

    private final class Leader implements LeaderEndPoint {
        private final BrokerEndPoint source;
        private Map<TopicPartition, Long> asked = Map.of();

        Leader(BrokerEndPoint source) {
            this.source = source;
        }

        @Override
        public boolean isTruncationOnFetchSupported() {
            return true;
        }

        @Override
        public void initiateClose() { }

        @Override
        public void close() { }

        @Override
        public BrokerEndPoint brokerEndPoint() {
            return source;
        }

        @Override
        public ResultWithPartitions<Option<ReplicaFetch>> buildFetch( // before 4.1.0
            scala.collection.Map<TopicPartition, PartitionFetchState> partitions) { // before 4.1.0
            Map<TopicPartition, PartitionFetchState> given = CollectionConverters.asJava(partitions); // before 4.1.0
        public ResultWithPartitions<Optional<ReplicaFetch>> buildFetch(Map<TopicPartition, PartitionFetchState> given) { // from 4.1.0
            Map<TopicPartition, FetchRequest.PartitionData> wanted = new LinkedHashMap<>();
            asked = new HashMap<>();
            if (answer != null)
                given.forEach((name, state) -> {
                    if (state.isReadyForFetch() && name.equals(answer.name)) {
                        asked.put(name, state.fetchOffset());
                        wanted.put(name, new FetchRequest.PartitionData(Uuid.ZERO_UUID, state.fetchOffset(), 0, 1_000_000,
                            Optional.of(state.currentLeaderEpoch()), Optional.empty()));
                    }
                });
            if (wanted.isEmpty())
                return new ResultWithPartitions<>(Option.empty(), scala.collection.immutable.Set$.MODULE$.empty()); // before 4.1.0
                return new ResultWithPartitions<>(Optional.empty(), Set.of()); // from 4.1.0
            return new ResultWithPartitions<>(new scala.Some<>(new ReplicaFetch(wanted, null)), // before 4.1.0
                scala.collection.immutable.Set$.MODULE$.empty()); // before 4.1.0
            return new ResultWithPartitions<>(Optional.of(new ReplicaFetch(wanted, null)), Set.of()); // from 4.1.0
        }

        @Override
        public scala.collection.Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder builder) { // before 4.1.0
        public Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder builder) { // from 4.1.0
            Map<TopicPartition, FetchResponseData.PartitionData> found = new HashMap<>();
            asked.forEach((name, offset) -> {
                int epoch = replicas.getPartitionOrException(name).getLeaderEpoch();
                found.put(name, new FetchResponseData.PartitionData().setPartitionIndex(name.partition())
                    .setHighWatermark(answer.isCommitted ? offset + answer.count : offset).setLogStartOffset(0)
                    .setRecords(answer.count == 0 ? Batches.records(List.of()) : Batches.batch(offset, answer.count, epoch)));
            });
            return CollectionConverters.asScala(found); // before 4.1.0
            return found; // from 4.1.0
        }

        @Override
        public OffsetAndEpoch fetchEarliestOffset(TopicPartition name, int leaderEpoch) {
            throw new UnsupportedOperationException();
        }

        @Override
        public OffsetAndEpoch fetchLatestOffset(TopicPartition name, int leaderEpoch) {
            throw new UnsupportedOperationException();
        }

        @Override
        public OffsetAndEpoch fetchEarliestLocalOffset(TopicPartition name, int leaderEpoch) {
            throw new UnsupportedOperationException();
        }

        public OffsetAndEpoch fetchEarliestPendingUploadOffset(TopicPartition name, int leaderEpoch) { // from 4.1.0
            throw new UnsupportedOperationException(); // from 4.1.0
        } // from 4.1.0

        @Override
        public scala.collection.Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets( // before 4.1.0
            scala.collection.Map<TopicPartition, OffsetForLeaderPartition> asked) { // before 4.1.0
        public Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets(Map<TopicPartition, OffsetForLeaderPartition> asked) { // from 4.1.0
            throw new UnsupportedOperationException();
        }
    }

    HostedBroker(List<File> directories, List<File> failed, Clock clock, ReplicaManagerSubject subject) throws Exception {
        this.subject = subject;
        this.clock = clock;
        config = settings(directories);
        Object topics = Proxy.newProxyInstance(ConfigRepository.class.getClassLoader(),
            new Class<?>[] {ConfigRepository.class}, (proxy, method, given) -> new Properties());
        logs = new LogManagerBuilder().setLogDirs(directories).setInitialOfflineDirs(failed)
            .setConfigRepository((ConfigRepository) topics).setInitialDefaultConfig(Logs.config(Map.of()))
            .setCleanerConfig(new CleanerConfig(false)).setScheduler(new Tasks())
            .setBrokerTopicStats(stats).setLogDirFailureChannel(failures).setTime(clock).build();
        replicas = new Replicas();
        publisher = publisher();
    }

    private static KafkaConfig settings(List<File> directories) {
        Properties properties = new Properties();
        properties.setProperty("process.roles", "broker");
        properties.setProperty("node.id", String.valueOf(ReplicaManagerSubject.NODE));
        properties.setProperty("controller.quorum.voters", "9@localhost:9093");
        properties.setProperty("controller.listener.names", "SSL");
        properties.setProperty("log.dirs", String.join(",", directories.stream().map(File::getPath).toList()));
        properties.setProperty("metadata.log.dir", new File(directories.get(0).getParentFile(), "metadata").getPath());
        properties.setProperty("replica.fetch.backoff.ms", "0");
        properties.setProperty("replica.lag.time.max.ms", "10000");
        properties.setProperty("replica.high.watermark.checkpoint.interval.ms", String.valueOf(ReplicaManagerSubject.HIGH_WATERMARKS_MS));
        return new KafkaConfig(properties);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Option purgatory(String name) {
        return new scala.Some(new DelayedOperationPurgatory(name, new NoTimer(), ReplicaManagerSubject.NODE, 1_000, false, false));
    }

    private static ReplicaQuota quota() {
        return (ReplicaQuota) Proxy.newProxyInstance(ReplicaQuota.class.getClassLoader(), new Class<?>[] {ReplicaQuota.class},
            (proxy, method, given) -> method.getReturnType() == boolean.class ? false : null);
    }

    /** As DefaultAlterPartitionManager, it refuses a change while another one of the partition is not answered: none is. */
    private static AlterPartitionManager isr() {
        Set<Object> asked = new HashSet<>();
        return (AlterPartitionManager) Proxy.newProxyInstance(AlterPartitionManager.class.getClassLoader(),
            new Class<?>[] {AlterPartitionManager.class}, (proxy, method, given) -> {
                if (!method.getName().equals("submit"))
                    return null;
                return asked.add(given[0]) ? new CompletableFuture<LeaderAndIsr>()
                    : CompletableFuture.failedFuture(Errors.OPERATION_NOT_ATTEMPTED.exception());
            });
    }

    private DirectoryEventHandler directoryEvents() {
        return (DirectoryEventHandler) Proxy.newProxyInstance(DirectoryEventHandler.class.getClassLoader(),
            new Class<?>[] {DirectoryEventHandler.class}, (proxy, method, given) -> {
                if (method.getName().equals("handleAssignment")) {
                    var name = (org.apache.kafka.server.common.TopicIdPartition) given[0];
                    subject.assigned(name.topicId(), name.partitionId(), (Uuid) given[1]);
                }
                return null;
            });
    }

    private FaultHandler faults() {
        return (FaultHandler) Proxy.newProxyInstance(FaultHandler.class.getClassLoader(), new Class<?>[] {FaultHandler.class},
            (proxy, method, given) -> {
                String what = (String) given[0];
                if (what.startsWith("Error applying topics") || what.startsWith("Error starting LogManager")
                    || what.startsWith("Error starting Replica") || what.startsWith("Uncaught exception while publishing broker"))
                    subject.note(what.split(" delta in")[0] + ": " + given[1].getClass().getSimpleName());
                return new RuntimeException(what);
            });
    }

    private final class Configs extends DynamicConfigPublisher {
        Configs() {
            super(config, faults(), null, "broker");
        }

        @Override
        public void onMetadataUpdate(MetadataDelta delta, MetadataImage image) { }
    }

    private BrokerMetadataPublisher publisher() throws Exception {
        Constructor<?> constructor = BrokerMetadataPublisher.class.getConstructors()[0];
        List<Object> given = new ArrayList<>();
        for (Class<?> type : constructor.getParameterTypes()) {
            if (type == KafkaConfig.class)
                given.add(config);
            else if (type == ReplicaManager.class)
                given.add(replicas);
            else if (type == LogManager.class)
                given.add(logs);
            else if (type == KRaftMetadataCache.class)
                given.add(metadata);
            else if (type == DynamicConfigPublisher.class)
                given.add(new Configs());
            else
                given.add(type == FaultHandler.class ? faults() : other(type));
        }
        return (BrokerMetadataPublisher) constructor.newInstance(given.toArray());
    }

    /** What of the broker is of no concern here, without parts; so the publisher goes on to what is. */
    private Object other(Class<?> type) throws Exception {
        if (type.isRecord()) {
            Constructor<?> constructor = type.getDeclaredConstructors()[0];
            return constructor.newInstance(Arrays.stream(constructor.getParameterTypes())
                .map(part -> part == Optional.class ? Optional.empty() : null).toArray());
        }
        Object made = Made.of(type);
        for (Field field : made.getClass().getDeclaredFields()) {
            Class<?> part = field.getType();
            if (java.lang.reflect.Modifier.isStatic(field.getModifiers()) || Proxy.isProxyClass(made.getClass()))
                continue;
            Object value = part == FaultHandler.class ? faults()
                : part == Optional.class ? Optional.empty()
                : part == Option.class ? Option.empty()
                : part == QuotaManagers.class ? other(part)
                : null;
            if (value != null) {
                field.setAccessible(true);
                field.set(made, value);
            }
        }
        return made;
    }

    void publish(MetadataDelta delta, MetadataImage image) {
        publisher.onMetadataUpdate(delta, image, null);
        work();
    }

    /** A round of each fetcher; without an answer it only gets ready to fetch. */
    private void work() {
        for (AbstractFetcherThread thread : CollectionConverters.asJava(replicas.replicaFetcherManager().fetcherThreadMap().values()))
            thread.doWork();
    }

    void beginControlledShutdown() {
        replicas.beginControlledShutdown();
    }

    void elapse(long untilMs) {
        while (nextCheckpointMs >= 0 && nextCheckpointMs <= untilMs) {
            clock.nowMs = nextCheckpointMs;
            replicas.checkpointHighWatermarks();
            nextCheckpointMs += ReplicaManagerSubject.HIGH_WATERMARKS_MS;
        }
    }

    void stop() throws Exception {
        replicas.shutdown(true);
        try {
            logs.shutdown(BROKER_EPOCH);
        } catch (Exception late) { // After all else it unlocks the directories, of which one may have failed.
            if (!(late instanceof ClosedChannelException))
                throw late;
        }
        close(offline);
        unlock();
    }

    /** It ends, and leaves its files as they are. */
    void abandon() throws Exception {
        List<UnifiedLog> open = new ArrayList<>();
        for (UnifiedLog log : CollectionConverters.asJava(logs.allLogs())) // before 4.4.0
        for (UnifiedLog log : logs.allLogs()) // from 4.4.0
            open.add(log);
        close(open);
        close(offline);
        unlock();
    }

    private void unlock() throws Exception {
        Field field = LogManager.class.getDeclaredField("dirLocks");
        field.setAccessible(true);
        Object locks = field.get(logs);
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

    void fail(File directory) {
        for (UnifiedLog log : CollectionConverters.asJava(logs.allLogs())) // before 4.4.0
        for (UnifiedLog log : logs.allLogs()) // from 4.4.0
            if (log.dir().getParentFile().equals(directory))
                offline.add(log);
        replicas.handleLogDirFailure(directory.getAbsolutePath(), true);
    }

    String append(TopicPartition name, int count, boolean acksAll) {
        try {
            Partition partition = replicas.getPartitionOrException(name);
            partition.appendRecordsToLeader(Batches.batch(0, count, 0), AppendOrigin.CLIENT, acksAll ? -1 : 1, // before 4.0.0
                RequestLocal.NoCaching(), VerificationGuard.SENTINEL); // before 4.0.0
            Calls.append(partition, count, acksAll ? -1 : 1); // from 4.0.0
            return null;
        } catch (Exception refused) {
            return refused(name, refused);
        }
    }

    /** Where the last batches begin, -1 for beyond the end. */
    private long offset(TopicPartition name, int batches) {
        Option<UnifiedLog> log = replicas.localLog(name);
        if (log.isEmpty() || batches <= 0)
            return log.isEmpty() ? 0 : log.get().logEndOffset() - batches;
        List<long[]> all = Logs.batches(log.get());
        return all.size() < batches ? log.get().logStartOffset() : all.get(all.size() - batches)[2];
    }

    Object fetch(TopicPartition name, int replica, int before, long leaderEpoch, long lastEpoch) {
        long offset = offset(name, before);
        FetchParams parameters =
            new FetchParams((short) 17, replica, replica, 0, 1, 1_000_000, FetchIsolation.LOG_END, Optional.empty()); // before 4.0.0
            new FetchParams(replica, replica, 0, 1, 1_000_000, FetchIsolation.LOG_END, Optional.empty()); // from 4.0.0
        FetchRequest.PartitionData asked = new FetchRequest.PartitionData(Uuid.ZERO_UUID, offset, 0, 1_000_000,
            Subject.epoch(leaderEpoch), Subject.epoch(lastEpoch));
        try {
            Partition partition = replicas.getPartitionOrException(name);
            LogReadInfo read = partition.fetchRecords(parameters, asked, clock.nowMs, 1_000_000, true, true); // before 4.0.0
            if (read.divergingEpoch.isPresent()) // before 4.0.0
                return Arrays.asList(read.highWatermark, read.logStartOffset, // before 4.0.0
                    Arrays.asList(read.divergingEpoch.get().epoch(), read.divergingEpoch.get().endOffset())); // before 4.0.0
            List<Object> batches = new ArrayList<>(); // before 4.0.0
            for (RecordBatch batch : read.fetchedData.records.batches()) // before 4.0.0
                batches.add(Arrays.asList(batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch())); // before 4.0.0
            return Arrays.asList(read.highWatermark, read.logStartOffset, null, batches); // before 4.0.0
            return Calls.shown(partition.fetchRecords(parameters, asked, clock.nowMs, 1_000_000, true, true)); // from 4.0.0
        } catch (Exception refused) {
            return refused(name, refused);
        }
    }

    /** Without a log, epochs are compared first, which the core does not. */
    private String refused(TopicPartition name, Exception refused) {
        return lacksLog(replicas.onlinePartition(name)) ? "NOT_LEADER_OR_FOLLOWER" : Errors.forException(refused).name();
    }

    /** Its leader answers a fetch; whether it is fetched at all. */
    Object copy(TopicPartition name, int count, boolean isCommitted) {
        for (AbstractFetcherThread thread : CollectionConverters.asJava(replicas.replicaFetcherManager().fetcherThreadMap().values()))
            if (!thread.fetchState(name).isEmpty()) {
                answer = new Answer(name, count, isCommitted);
                thread.doWork();
                answer = null;
                return true;
            }
        return false;
    }

    void shrink(TopicPartition name) {
        Option<Partition> partition = replicas.onlinePartition(name);
        if (!partition.isEmpty())
            partition.get().maybeShrinkIsr();
    }

    /** As ReplicaManager.checkpointHighWatermarks, but that a directory without a log is written, too. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    void writeHighWatermarks() {
        Map<String, Map<TopicPartition, Long>> all = new HashMap<>();
        CollectionConverters.asJava(replicas.highWatermarkCheckpoints()).keySet().forEach(directory -> all.put(directory, new HashMap<>()));
        for (UnifiedLog log : CollectionConverters.asJava(logs.allLogs())) // before 4.4.0
        for (UnifiedLog log : logs.allLogs()) // from 4.4.0
            if (all.containsKey(log.parentDir()))
                all.get(log.parentDir()).put(log.topicPartition(), log.highWatermark());
        CollectionConverters.asJava(replicas.highWatermarkCheckpoints()).forEach((directory, file) ->
            file.write((scala.collection.Map) CollectionConverters.asScala(all.get(directory)))); // before 4.0.0
            file.write(all.get(directory))); // from 4.0.0
    }

    private static boolean lacksLog(Option<Partition> online) {
        return !online.isEmpty() && online.get().log().isEmpty();
    }

    /** An offline partition is not forgotten when its topic is deleted; it matters only if it is of the `topic`. */
    Object shown(TopicPartition name, List<File> directories, Uuid topic) {
        HostedPartition hosted = replicas.getPartition(name); // before 4.3.0
        HostedPartition<Partition> hosted = replicas.getPartition(name); // from 4.3.0
        List<Object> shown = new ArrayList<>();
        Option<Partition> online = replicas.onlinePartition(name);
        if (online.isEmpty() || online.get().log().isEmpty()) { // In a directory that has failed there may be one.
            boolean isOffline = lacksLog(online);
            if (hosted instanceof HostedPartition.Offline offline) { // before 4.3.0
                Option<Partition> partition = offline.partition(); // before 4.3.0
                isOffline = !partition.isEmpty() && partition.get().topicId().contains(topic); // before 4.3.0
            if (hosted instanceof HostedPartition.Offline<Partition> offline) { // from 4.3.0
                Optional<Partition> partition = offline.partition(); // from 4.3.0
                isOffline = partition.isPresent() && partition.get().topicId().contains(topic); // from 4.3.0
            }
            shown.add(isOffline ? "offline" : "none");
        } else {
            Partition partition = online.get();
            Option<Object> leader = partition.leaderReplicaIdOpt();
            shown.addAll(Arrays.asList(partition.isLeader(), leader.isEmpty() ? 0 : Math.max((Integer) leader.get(), 0),
                partition.getLeaderEpoch(), partition.getPartitionEpoch(), partition.partitionState().isInflight()));
            shown.add(PartitionSubject.sorted(CollectionConverters.asJava(partition.partitionState().isr()))); // before 4.0.0
            shown.add(PartitionSubject.sorted(Calls.isr(partition))); // from 4.0.0
            UnifiedLog log = partition.log().get();
            shown.add(directories.indexOf(log.dir().getParentFile()));
            shown.addAll(Logs.state(log));
        }
        for (AbstractFetcherThread thread : CollectionConverters.asJava(replicas.replicaFetcherManager().fetcherThreadMap().values())) {
            var state = thread.fetchState(name);
            if (!state.isEmpty())
                shown.add(Arrays.asList("fetched", thread.leader().brokerEndPoint().id(), state.get().fetchOffset(),
                    state.get().currentLeaderEpoch(), state.get().state().toString().toLowerCase()));
        }
        return shown;
    }
}
