package highwater;

import java.io.File;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

import kafka.cluster.BrokerEndPoint; // before 4.1.0
import kafka.common.UnexpectedAppendOffsetException; // before 4.1.0
import kafka.log.UnifiedLog; // before 4.1.0
import kafka.server.AbstractFetcherThread;
import kafka.server.AbstractFetcherThread.ReplicaFetch; // before 4.1.0
import kafka.server.AbstractFetcherThread.ResultWithPartitions; // before 4.1.0
import kafka.server.BrokerTopicStats; // before 4.1.0
import kafka.server.FailedPartitions;
import kafka.server.FetchContext; // before 4.3.0
import kafka.server.FetchManager; // before 4.3.0
import kafka.server.FetchSessionCacheShard; // before 4.3.0
import kafka.server.InitialFetchState;
import kafka.server.LeaderEndPoint; // before 4.1.0
import kafka.server.OffsetTruncationState;
import kafka.server.PartitionFetchState; // before 4.1.0
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.KafkaStorageException;
import org.apache.kafka.common.internals.PartitionStates;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.LogContext; // before 4.4.0
import org.apache.kafka.common.utils.internals.LogContext; // from 4.4.0
import org.apache.kafka.server.FetchContext; // from 4.3.0
import org.apache.kafka.server.FetchManager; // from 4.3.0
import org.apache.kafka.server.FetchSession; // from 4.3.0
import org.apache.kafka.server.FetchSessionCacheShard; // from 4.3.0
import org.apache.kafka.server.LeaderEndPoint; // from 4.1.0
import org.apache.kafka.server.PartitionFetchState; // from 4.1.0
import org.apache.kafka.server.ReplicaFetch; // from 4.1.0
import org.apache.kafka.server.ResultWithPartitions; // from 4.1.0
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.network.BrokerEndPoint; // from 4.1.0
import org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException; // from 4.1.0
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog; // from 4.1.0
import org.apache.kafka.storage.log.metrics.BrokerTopicStats; // from 4.1.0
import scala.Option;
import scala.Some;
import scala.collection.immutable.Set.Set1;
import scala.jdk.javaapi.CollectionConverters; // before 4.1.0

/** AbstractFetcherThread over several logs, with FetchSessionHandler, as ReplicaFetcherThread and RemoteLeaderEndPoint. */
final class Fetcher {
    private static final BrokerEndPoint LEADER = new BrokerEndPoint(1, "localhost", 9092);
    private static final Uuid TOPIC = new Uuid(7, 7);
    private static final Map<Uuid, String> TOPICS = Map.of(TOPIC, "t");
    private static final short VERSION = ApiKeys.FETCH.latestVersion();
    private static final int BACKOFF_MS = 3_600_000;

    private final List<UnifiedLog> logs = new ArrayList<>();
    private final Set<Integer> broken = new HashSet<>();
    private final Set<Integer> outOfRange = new HashSet<>();
    private final FailedPartitions failed = new FailedPartitions();
    private final FetchSessionHandler session = new FetchSessionHandler(new LogContext(), 1);
    private final FetcherSubject subject;
    private final FetchManager manager;
    private final Fetching thread;

    Fetcher(List<File> folders, Clock clock, FetcherSubject subject) throws Exception {
        this.subject = subject;
        for (File folder : folders)
            logs.add(Logs.open(folder, Logs.config(Map.of()), 0, 0, true, clock));
        FetchSessionCacheShard shard = new FetchSessionCacheShard(10, 120_000, Integer.MAX_VALUE, 0);
        manager = new FetchManager(clock, shard); // before 4.3.0
        manager = new FetchManager(clock, new FetchSession.FetchSessionCache(List.of(shard))); // from 4.3.0
        thread = new Fetching(new Leader());
    }

    private static TopicPartition name(int partition) {
        return new TopicPartition("t", partition);
    }

    private UnifiedLog log(TopicPartition name) {
        return logs.get(name.partition());
    }

    /** Truncations and appends fail on a broken disk, but for those of what has just been out of range. */
    private UnifiedLog written(TopicPartition name) {
        if (broken.contains(name.partition()) && !outOfRange.contains(name.partition()))
            throw new KafkaStorageException("broken");
        return log(name);
    }

    private final class Leader implements LeaderEndPoint {
        private Map<TopicPartition, FetchRequest.PartitionData> asked;

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
            return LEADER;
        }

        /** As RemoteLeaderEndPoint does it. */
        @Override
        public ResultWithPartitions<Option<ReplicaFetch>> buildFetch( // before 4.1.0
            scala.collection.Map<TopicPartition, PartitionFetchState> partitions) { // before 4.1.0
            FetchSessionHandler.Builder builder = session.newBuilder(); // before 4.1.0
            CollectionConverters.asJava(partitions).forEach((name, state) -> { // before 4.1.0
        public ResultWithPartitions<Optional<ReplicaFetch>> buildFetch(Map<TopicPartition, PartitionFetchState> partitions) { // from 4.1.0
            FetchSessionHandler.Builder builder = session.newBuilder(partitions.size(), false); // from 4.1.0
            partitions.forEach((name, state) -> { // from 4.1.0
                if (state.isReadyForFetch())
                    builder.add(name, new FetchRequest.PartitionData(TOPIC, state.fetchOffset(), log(name).logStartOffset(),
                        1_000_000, Optional.of(state.currentLeaderEpoch()), last(state)));
            });
            FetchSessionHandler.FetchRequestData data = builder.build();
            asked = data.sessionPartitions();
            if (asked.isEmpty() && data.toForget().isEmpty())
                return new ResultWithPartitions<>(Option.empty(), scala.collection.immutable.Set$.MODULE$.empty()); // before 4.1.0
                return new ResultWithPartitions<>(Optional.empty(), Set.of()); // from 4.1.0
            FetchRequest.Builder request = FetchRequest.Builder
                .forReplica(VERSION, FetcherSubject.LOCAL, 1, 0, 1, data.toSend())
                .removed(data.toForget()).replaced(data.toReplace()).metadata(data.metadata());
            return new ResultWithPartitions<>(new Some<>(new ReplicaFetch(asked, request)), // before 4.1.0
                scala.collection.immutable.Set$.MODULE$.empty()); // before 4.1.0
            return new ResultWithPartitions<>(Optional.of(new ReplicaFetch(asked, request)), Set.of()); // from 4.1.0
        }

        private Optional<Integer> last(PartitionFetchState state) {
            return state.lastFetchedEpoch().isEmpty() ? Optional.empty() // before 4.1.0
                : Optional.of((Integer) state.lastFetchedEpoch().get()); // before 4.1.0
            return state.lastFetchedEpoch(); // from 4.1.0
        }

        /** As RemoteLeaderEndPoint and KafkaApis do it. */
        @Override
        public scala.collection.Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder builder) { // before 4.1.0
        public Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder builder) { // from 4.1.0
            thread.set("fetchBackOffMs", BACKOFF_MS);
            FetchResponse response;
            try {
                if (!asked.isEmpty())
                    subject.asked(positions());
                response = served(builder.build(VERSION));
                if (!asked.isEmpty())
                    subject.answered();
            } catch (FetcherSubject.Lost lost) {
                session.handleError(lost);
                throw lost;
            }
            if (!session.handleResponse(response, VERSION))
                throw new IllegalStateException("the session ended: " + response.error());
            Map<TopicPartition, FetchResponseData.PartitionData> found =
                response.responseData(session.sessionTopicNames(), VERSION);
            return CollectionConverters.asScala(found); // before 4.1.0
            return found; // from 4.1.0
        }

        private List<Object> positions() {
            Map<Integer, Object> shown = new TreeMap<>();
            asked.forEach((name, one) -> shown.put(name.partition(), Arrays.asList(name.partition(), one.fetchOffset,
                one.currentLeaderEpoch.orElse(-1), one.lastFetchedEpoch.orElse(-1))));
            return new ArrayList<>(shown.values());
        }

        private FetchResponse served(FetchRequest request) {
            FetchContext context = manager.newContext(VERSION, request.metadata(), request.isFromFollower(),
                request.fetchData(TOPICS), request.forgottenTopics(TOPICS), TOPICS);
            LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> found = new LinkedHashMap<>();
            context.foreachPartition((name, one) -> {
                if (!one.equals(asked.get(name.topicPartition())))
                    throw new IllegalStateException("the leader's session differs: " + name);
                FetchResponseData.PartitionData data = Answers.fetched(subject.fetch(name.partition(), one.fetchOffset,
                    one.currentLeaderEpoch.orElse(-1), one.lastFetchedEpoch.orElse(-1)));
                found.put(name, data.setPartitionIndex(name.partition()));
                if (data.errorCode() != 0)
                    data.setHighWatermark(-1).setRecords(Batches.records(List.of()));
                return scala.runtime.BoxedUnit.UNIT; // before 4.3.0
            });
            if (found.size() != asked.size())
                throw new IllegalStateException("the leader's session differs");
            return context.updateAndGenerateResponseData(found); // before 4.0.0
            return context.updateAndGenerateResponseData(found, List.of()); // from 4.0.0
        }

        @Override
        public OffsetAndEpoch fetchEarliestOffset(TopicPartition name, int leaderEpoch) {
            return Answers.offset(subject.earliest(name.partition(), leaderEpoch), leaderEpoch);
        }

        @Override
        public OffsetAndEpoch fetchLatestOffset(TopicPartition name, int leaderEpoch) {
            outOfRange.add(name.partition());
            return Answers.offset(subject.latest(name.partition(), leaderEpoch), leaderEpoch);
        }

        @Override
        public OffsetAndEpoch fetchEarliestLocalOffset(TopicPartition name, int leaderEpoch) {
            throw new UnsupportedOperationException();
        }

        public OffsetAndEpoch fetchEarliestPendingUploadOffset(TopicPartition name, int leaderEpoch) { // from 4.1.0
            throw new UnsupportedOperationException(); // from 4.1.0
        } // from 4.1.0

        /** Only of leaders that compare no epochs in fetches. */
        @Override
        public scala.collection.Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets( // before 4.1.0
            scala.collection.Map<TopicPartition, OffsetForLeaderPartition> asked) { // before 4.1.0
        public Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets(Map<TopicPartition, OffsetForLeaderPartition> asked) { // from 4.1.0
            throw new UnsupportedOperationException();
        }
    }

    private final class Fetching extends AbstractFetcherThread {
        Fetching(LeaderEndPoint leader) {
            super("fetcher", "fetcher", leader, failed, null, 0, false, new BrokerTopicStats(false));
        }

        @Override
        public Option<LogAppendInfo> processPartitionData(TopicPartition name, long offset, // before 4.1.0
            FetchResponseData.PartitionData data) { // before 4.1.0
        public Option<LogAppendInfo> processPartitionData(TopicPartition name, long offset, int leaderEpoch, // from 4.1.0
            FetchResponseData.PartitionData data) { // from 4.1.0
            UnifiedLog local = log(name);
            if (offset != local.logEndOffset())
                throw new IllegalStateException("offset mismatch");
            var records = Batches.memory(FetchResponse.recordsOrFail(data));
            if (records.sizeInBytes() > 0)
                written(name);
            LogAppendInfo appended;
            try {
                appended = local.appendAsFollower(records); // before 4.1.0
                appended = local.appendAsFollower(records, leaderEpoch); // from 4.1.0
            } catch (UnexpectedAppendOffsetException refused) {
                long end = local.logEndOffset();
                if (end != local.logStartOffset() || refused.firstOffset() >= end || refused.lastOffset() < end) // before 4.1.0
                if (end != local.logStartOffset() || refused.firstOffset >= end || refused.lastOffset < end) // from 4.1.0
                    throw refused;
                local.truncateFullyAndStartAt(refused.firstOffset(), Option.empty()); // before 4.1.0
                appended = local.appendAsFollower(records); // before 4.1.0
                local.truncateFullyAndStartAt(refused.firstOffset, Optional.empty()); // from 4.1.0
                appended = local.appendAsFollower(records, leaderEpoch); // from 4.1.0
            }
            try {
                local.maybeUpdateHighWatermark(data.highWatermark());
                local.maybeIncrementLogStartOffset(data.logStartOffset(), LogStartOffsetIncrementReason.LeaderOffsetIncremented);
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
            return new Some<>(appended);
        }

        @Override
        public void truncate(TopicPartition name, OffsetTruncationState state) {
            written(name).truncateTo(state.offset());
        }

        @Override
        public void truncateFullyAndStartAt(TopicPartition name, long offset) {
            written(name).truncateFullyAndStartAt(offset, Option.empty()); // before 4.1.0
            written(name).truncateFullyAndStartAt(offset, Optional.empty()); // from 4.1.0
        }

        @Override
        public Option<Object> latestEpoch(TopicPartition name) { // before 4.1.0
        public Optional<Integer> latestEpoch(TopicPartition name) { // from 4.1.0
            return log(name).latestEpoch();
        }

        @Override
        public long logStartOffset(TopicPartition name) {
            return log(name).logStartOffset();
        }

        @Override
        public long logEndOffset(TopicPartition name) {
            return log(name).logEndOffset();
        }

        @Override
        public Option<OffsetAndEpoch> endOffsetForEpoch(TopicPartition name, int epoch) { // before 4.1.0
        public Optional<OffsetAndEpoch> endOffsetForEpoch(TopicPartition name, int epoch) { // from 4.1.0
            return log(name).endOffsetForEpoch(epoch);
        }

        @Override // before 4.1.0
        public boolean isOffsetForLeaderEpochSupported() { // before 4.1.0
            return true; // before 4.1.0
        public boolean shouldFetchFromLastTieredOffset(TopicPartition name, long leaderEnd, long end) { // from 4.1.0
            return false; // from 4.1.0
        }

        private Field field(String name) {
            for (Field each : AbstractFetcherThread.class.getDeclaredFields())
                if (each.getName().equals(name) || each.getName().endsWith("$" + name)) {
                    each.setAccessible(true);
                    return each;
                }
            throw new IllegalStateException("no field " + name);
        }

        void set(String name, int value) {
            try {
                field(name).setInt(this, value);
            } catch (IllegalAccessException problem) {
                throw new IllegalStateException(problem);
            }
        }

        @SuppressWarnings("unchecked")
        PartitionStates<PartitionFetchState> states() {
            try {
                return (PartitionStates<PartitionFetchState>) field("partitionStates").get(this);
            } catch (IllegalAccessException problem) {
                throw new IllegalStateException(problem);
            }
        }
    }

    /** One round. Its partitions are delayed for as long as the case wants; nothing waits while none is fetched. */
    void work() {
        outOfRange.clear();
        thread.doWork();
        thread.set("fetchBackOffMs", 0);
    }

    /** All delays are over. */
    void elapse() {
        PartitionStates<PartitionFetchState> states = thread.states();
        new LinkedHashMap<>(states.partitionStateMap()).forEach((name, state) -> {
            if (state.isDelayed())
                states.update(name, new PartitionFetchState(state.topicId(), state.fetchOffset(), state.lag(),
                    state.currentLeaderEpoch(), Option.empty(), state.state(), state.lastFetchedEpoch())); // before 4.1.0
                    state.currentLeaderEpoch(), Optional.empty(), state.state(), state.lastFetchedEpoch())); // from 4.1.0
        });
    }

    void close() {
        thread.fetcherStats().unregister();
        for (UnifiedLog log : logs)
            log.closeHandlers(); // before 4.4.0
            log.closeQuietly(); // from 4.4.0
    }

    void fail(int partition) {
        broken.add(partition);
    }

    /** Whether a write to its broken disk failed. */
    private boolean isLost(int partition) {
        return broken.contains(partition) && failed.contains(name(partition));
    }

    void own(int partition, int count, int epoch) {
        UnifiedLog log = logs.get(partition);
        if (broken.contains(partition) || !thread.fetchState(name(partition)).isEmpty())
            return;
        log.appendAsFollower(Batches.batch(log.logEndOffset(), count, epoch)); // before 4.1.0
        log.appendAsFollower(Batches.batch(log.logEndOffset(), count, epoch), epoch); // from 4.1.0
    }

    void highWatermark(int partition, long offset) throws Exception {
        logs.get(partition).updateHighWatermark(offset);
    }

    /** As ReplicaManager.initialFetchOffset; what is on a failed disk is not followed. */
    void follow(int partition, int leaderEpoch) {
        TopicPartition name = name(partition);
        UnifiedLog log = log(name);
        if (isLost(partition))
            return;
        long offset = log.latestEpoch().nonEmpty() ? log.logEndOffset() : log.highWatermark(); // before 4.1.0
        long offset = log.latestEpoch().isPresent() ? log.logEndOffset() : log.highWatermark(); // from 4.1.0
        thread.addPartitions(new scala.collection.immutable.Map.Map1<>(name,
            new InitialFetchState(new Some<>(TOPIC), LEADER, leaderEpoch, offset)));
    }

    void leave(int partition) {
        if (isLost(partition))
            return;
        thread.removePartitions(new Set1<>(name(partition)));
        failed.removeAll(new Set1<>(name(partition)));
    }

    /** Whether it is truncated or fetched, its leader epoch and whether it is delayed, while it is followed; its log. */
    List<Object> state(int partition) {
        List<Object> shown = new ArrayList<>();
        var state = thread.fetchState(name(partition));
        if (state.isEmpty())
            shown.add(failed.contains(name(partition)) ? "failed" : null);
        else
            shown.add(Arrays.asList(state.get().state().toString().toLowerCase(Locale.ROOT),
                state.get().currentLeaderEpoch(), state.get().isDelayed()));
        if (isLost(partition))
            shown.add("lost");
        else
            shown.addAll(Logs.state(logs.get(partition)));
        return shown;
    }
}
