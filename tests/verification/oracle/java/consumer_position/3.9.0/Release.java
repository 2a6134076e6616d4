package org.apache.kafka.clients.consumer.internals;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale; // before 4.0.0
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import highwater.Clock;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.consumer.OffsetResetStrategy; // before 4.0.0
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.internal.MemoryRecords; // from 4.3.0
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.LogContext; // before 4.4.0
import org.apache.kafka.common.utils.internals.LogContext; // from 4.4.0

/** A consumer's position since 3.9, with two brokers that are always there; answers come when they are told to. */
public final class Release {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final Uuid TOPIC = new Uuid(1, 1);
    private static final int BROKERS = 2, BACKOFF_MS = 100, TIMEOUT_MS = 30_000, ROUNDS = 5;
    private static final long METADATA_MS = 1_000, END = 1_000_000;

    private final Clock time;
    private final List<ClientRequest> pending = new ArrayList<>();
    private final Map<ClientRequest, SubscriptionState.FetchPosition> from = new HashMap<>();
    private final List<Object> sent = new ArrayList<>();
    private final List<Object> told = new ArrayList<>();
    private final SubscriptionState subscriptions;
    private final ConsumerMetadata metadata;
    private final ConsumerNetworkClient client;
    private final OffsetFetcher offsets;
    private final Fetcher<byte[], byte[]> fetcher;
    private int correlation;
    private int leader;
    private int leaderEpoch;
    private boolean hasError;
    private boolean backsOff;

    public Release(String policy, Clock time) {
        this.time = time;
        LogContext log = new LogContext();
        subscriptions = new SubscriptionState(log, strategy(policy));
        metadata = new ConsumerMetadata(BACKOFF_MS, BACKOFF_MS, Long.MAX_VALUE, false, false, subscriptions, log, new ClusterResourceListeners());
        ApiVersions versions = new ApiVersions();
        for (int broker = 1; broker <= BROKERS; broker++)
            versions.update(String.valueOf(broker), NodeApiVersions.create());
        KafkaClient network = (KafkaClient) Proxy.newProxyInstance(KafkaClient.class.getClassLoader(), new Class<?>[] {KafkaClient.class},
            (proxy, method, given) -> answer(method, given));
        client = new ConsumerNetworkClient(log, network, metadata, time, BACKOFF_MS, TIMEOUT_MS, Integer.MAX_VALUE);
        offsets = new OffsetFetcher(log, client, metadata, subscriptions, time, BACKOFF_MS, TIMEOUT_MS, IsolationLevel.READ_UNCOMMITTED, versions);
        Metrics metrics = new Metrics();
        fetcher = new Fetcher<>(log, client, metadata, subscriptions,
            new FetchConfig(1, 1 << 20, 500, 1 << 20, Integer.MAX_VALUE, false, "", IsolationLevel.READ_UNCOMMITTED),
            new Deserializers<>(new ByteArrayDeserializer(), new ByteArrayDeserializer()), // before 4.0.0
            new Deserializers<>(new ByteArrayDeserializer(), new ByteArrayDeserializer(), metrics), // from 4.0.0
            new FetchMetricsManager(metrics, new FetchMetricsRegistry("c")), time, versions);
        subscriptions.assignFromUser(Set.of(PARTITION));
        metadata(1, 0);
    }

    private static OffsetResetStrategy strategy(String name) { // before 4.0.0
        return OffsetResetStrategy.valueOf(name.toUpperCase(Locale.ROOT)); // before 4.0.0
    private static AutoOffsetResetStrategy strategy(String name) { // from 4.0.0
        return AutoOffsetResetStrategy.fromString(name.equals("by_duration") ? "by_duration:PT1S" : name); // from 4.0.0
    }

    private Object answer(Method method, Object[] given) {
        switch (method.getName()) {
            case "newClientRequest":
                return new ClientRequest((String) given[0], (AbstractRequest.Builder<?>) given[1], correlation++, "c",
                    (Long) given[2], true, (Integer) given[4], (RequestCompletionHandler) given[5]);
            case "send":
                ClientRequest request = (ClientRequest) given[0];
                pending.add(request);
                from.put(request, subscriptions.position(PARTITION));
                sent.add(shown(request));
                return null;
            case "poll":
                return List.of();
            case "ready":
            case "isReady":
            case "active":
                return true;
            case "connectionDelay":
            case "pollDelayMs":
            case "throttleDelayMs":
                return 0L;
            default:
                Class<?> kind = method.getReturnType();
                return kind == boolean.class ? (Object) false : kind == int.class ? (Object) 0 : null;
        }
    }

    // What is sent, and what it is answered.

    private static Object shown(ClientRequest request) {
        AbstractRequest body = request.requestBuilder().build(request.requestBuilder().latestAllowedVersion());
        int broker = Integer.parseInt(request.destination());
        if (body instanceof OffsetsForLeaderEpochRequest) {
            OffsetForLeaderPartition asked = ((OffsetsForLeaderEpochRequest) body).data().topics().iterator().next().partitions().get(0);
            return Arrays.asList("epoch-end", broker, asked.currentLeaderEpoch(), asked.leaderEpoch());
        }
        if (body instanceof ListOffsetsRequest) {
            ListOffsetsPartition asked = ((ListOffsetsRequest) body).topics().get(0).partitions().get(0);
            return Arrays.asList("offset", broker, asked.currentLeaderEpoch(), Math.min(asked.timestamp(), 0));
        }
        FetchRequest.PartitionData asked = fetch(request);
        return Arrays.asList("fetch", broker, asked.currentLeaderEpoch.orElse(-1), asked.fetchOffset);
    }

    private static FetchRequest.PartitionData fetch(ClientRequest request) {
        return ((FetchRequest.Builder) request.requestBuilder()).fetchData().get(PARTITION);
    }

    private ClientRequest oldest(ApiKeys kind) {
        return hasError ? null : pending.stream().filter(request -> request.apiKey() == kind).findFirst().orElse(null);
    }

    private void complete(ClientRequest request, AbstractResponse response) {
        pending.remove(request);
        new ClientResponse(request.makeHeader(request.requestBuilder().latestAllowedVersion()), request.callback(), request.destination(),
            request.createdTimeMs(), time.nowMs, response == null, null, null, response).onComplete();
        client.pollNoWakeup();
    }

    public void epochEnd(String error, int epoch, long end) {
        ClientRequest request = oldest(ApiKeys.OFFSET_FOR_LEADER_EPOCH);
        if (request == null)
            return;
        OffsetForLeaderEpochResponseData data = new OffsetForLeaderEpochResponseData();
        data.topics().add(new OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult().setTopic("t").setPartitions(List.of(
            new OffsetForLeaderEpochResponseData.EpochEndOffset().setPartition(0).setErrorCode(code(error)).setLeaderEpoch(epoch).setEndOffset(end))));
        complete(request, new OffsetsForLeaderEpochResponse(data));
        poll();
    }

    public void offset(String error, long offset, int epoch) {
        ClientRequest request = oldest(ApiKeys.LIST_OFFSETS);
        if (request == null)
            return;
        complete(request, new ListOffsetsResponse(new ListOffsetsResponseData().setTopics(List.of(
            new ListOffsetsResponseData.ListOffsetsTopicResponse().setName("t").setPartitions(List.of(
                new ListOffsetsResponseData.ListOffsetsPartitionResponse().setPartitionIndex(0).setErrorCode(code(error))
                    .setTimestamp(-1).setOffset(offset).setLeaderEpoch(epoch)))))));
        poll();
    }

    /** The offset that the oldest fetch asks for, -1 without one. */
    public long fetchOffset() {
        ClientRequest request = oldest(ApiKeys.FETCH);
        return request == null ? -1 : fetch(request).fetchOffset;
    }

    public void fetched(String error, MemoryRecords records) {
        ClientRequest request = oldest(ApiKeys.FETCH);
        FetchResponseData.PartitionData data = new FetchResponseData.PartitionData().setPartitionIndex(0).setErrorCode(code(error))
            .setHighWatermark(END).setLastStableOffset(END).setLogStartOffset(0).setRecords(records == null ? MemoryRecords.EMPTY : records);
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> all = new LinkedHashMap<>();
        all.put(new TopicIdPartition(TOPIC, PARTITION), data);
        SubscriptionState.FetchPosition before = subscriptions.position(PARTITION);
        boolean isValid = subscriptions.hasValidPosition(PARTITION);
        complete(request, FetchResponse.of(Errors.NONE, 0, 0, all, List.of()));
        // It would fetch again at once; here a retry from the same position waits for metadata.
        backsOff |= isValid && !error.isEmpty() && !error.equals("OFFSET_OUT_OF_RANGE") && from.remove(request) == before;
        poll();
    }

    private static short code(String error) {
        return error.isEmpty() ? 0 : Errors.valueOf(error).code();
    }

    // What else happens.

    /** Metadata comes, after any back-off; leader 0: none. */
    public void metadata(int leader, int epoch) {
        this.leader = leader;
        leaderEpoch = epoch;
        time.nowMs += METADATA_MS;
        backsOff = false;
        MetadataResponseData data = new MetadataResponseData().setClusterId("c").setControllerId(1);
        for (int broker = 1; broker <= BROKERS; broker++)
            data.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(broker).setHost("h" + broker).setPort(broker));
        data.topics().add(new MetadataResponseData.MetadataResponseTopic().setName("t").setTopicId(TOPIC).setPartitions(List.of(
            new MetadataResponseData.MetadataResponsePartition().setPartitionIndex(0).setLeaderId(leader == 0 ? -1 : leader)
                .setErrorCode(leader == 0 ? Errors.LEADER_NOT_AVAILABLE.code() : 0).setLeaderEpoch(epoch)
                .setReplicaNodes(List.of(1, 2)).setIsrNodes(List.of(1, 2)))));
        metadata.updateWithCurrentRequestVersion(new MetadataResponse(data, ApiKeys.METADATA.latestVersion()), false, time.nowMs);
        poll();
    }

    /** As KafkaConsumer.seek. */
    public void seek(long offset, Optional<Integer> epoch) {
        hasError = false;
        backsOff = false;
        epoch.ifPresent(known -> metadata.updateLastSeenEpochIfNewer(PARTITION, known));
        subscriptions.seekUnvalidated(PARTITION, new SubscriptionState.FetchPosition(offset, epoch, metadata.currentLeader(PARTITION)));
        poll();
    }

    /** As KafkaConsumer.seekToBeginning and seekToEnd. */
    public void reset(String name) {
        hasError = false;
        backsOff = false;
        subscriptions.requestOffsetReset(Set.of(PARTITION), strategy(name));
        poll();
    }

    public void lost() {
        backsOff |= pending.stream().anyMatch(request -> request.apiKey() == ApiKeys.FETCH);
        for (ClientRequest request : List.copyOf(pending))
            complete(request, null);
        poll();
    }

    /** What is not answered by then has timed out, and the last metadata comes again. */
    public void waitFor(long ms) {
        time.nowMs += ms;
        lost();
        metadata(leader, leaderEpoch);
    }

    /** KafkaConsumer.poll, until nothing more comes of it; an application that is told an error seeks first. */
    private void poll() {
        for (int round = 0; round < ROUNDS && !hasError; round++) {
            try {
                offsets.validatePositionsIfNeeded();
                subscriptions.resetInitializingPositions();
                offsets.resetPositionsIfNeeded();
                fetcher.collectFetch();
                if (!backsOff)
                    fetcher.sendFetches();
                client.pollNoWakeup();
            } catch (RuntimeException problem) {
                hasError = true;
                told.add(told(problem));
            }
        }
    }

    private static Object told(RuntimeException problem) {
        if (problem instanceof LogTruncationException) {
            LogTruncationException truncation = (LogTruncationException) problem;
            OffsetAndMetadata divergent = truncation.divergentOffsets().get(PARTITION);
            return Arrays.asList("truncation", truncation.offsetOutOfRangePartitions().get(PARTITION),
                divergent == null ? -1 : divergent.offset(), divergent == null ? -1 : divergent.leaderEpoch().orElse(-1));
        }
        if (problem instanceof OffsetOutOfRangeException)
            return Arrays.asList("out of range", ((OffsetOutOfRangeException) problem).offsetOutOfRangePartitions().get(PARTITION));
        if (problem instanceof NoOffsetForPartitionException)
            return Arrays.asList("no offset");
        throw problem;
    }

    /** What was sent and told, the state, and the position. */
    public List<Object> shown() {
        List<Object> shown = new ArrayList<>(Arrays.asList(new ArrayList<>(sent), new ArrayList<>(told)));
        sent.clear();
        told.clear();
        if (hasError)
            return shown;
        boolean resets = subscriptions.isOffsetResetNeeded(PARTITION);
        SubscriptionState.FetchPosition position = subscriptions.position(PARTITION);
        shown.add(subscriptions.hasValidPosition(PARTITION) ? "fetching" : subscriptions.awaitingValidation(PARTITION) ? "await_validation"
            : resets ? "await_reset" : "initializing");
        shown.add(!resets ? "" : subscriptions.resetStrategy(PARTITION).toString().toLowerCase(Locale.ROOT)); // before 4.0.0
        shown.add(!resets ? "" : subscriptions.resetStrategy(PARTITION).name()); // from 4.0.0
        if (position == null) {
            shown.add(null);
        } else {
            Metadata.LeaderAndEpoch leader = position.currentLeader;
            shown.add(Arrays.asList(position.offset, position.offsetEpoch.orElse(-1), leader.leader.map(Node::id).orElse(-1), leader.epoch.orElse(-1)));
        }
        return shown;
    }
}
