package org.apache.kafka.raft;

import java.io.File;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

import highwater.Clock;
import highwater.Folders;
import highwater.Subject;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.message.AddRaftVoterRequestData;
import org.apache.kafka.common.message.AddRaftVoterResponseData;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.BeginQuorumEpochRequestData;
import org.apache.kafka.common.message.BeginQuorumEpochResponseData;
import org.apache.kafka.common.message.EndQuorumEpochRequestData;
import org.apache.kafka.common.message.EndQuorumEpochResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FetchSnapshotRequestData;
import org.apache.kafka.common.message.FetchSnapshotResponseData;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.RemoveRaftVoterRequestData;
import org.apache.kafka.common.message.RemoveRaftVoterResponseData;
import org.apache.kafka.common.message.UpdateRaftVoterRequestData;
import org.apache.kafka.common.message.UpdateRaftVoterResponseData;
import org.apache.kafka.common.message.VoteRequestData;
import org.apache.kafka.common.message.VoteResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.MemoryRecordsBuilder; // before 4.3.0
import org.apache.kafka.common.record.RecordBatch; // before 4.3.0
import org.apache.kafka.common.record.Records; // before 4.3.0
import org.apache.kafka.common.record.SimpleRecord; // before 4.3.0
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.UnalignedMemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.internal.MemoryRecords; // from 4.3.0
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder; // from 4.3.0
import org.apache.kafka.common.record.internal.RecordBatch; // from 4.3.0
import org.apache.kafka.common.record.internal.Records; // from 4.3.0
import org.apache.kafka.common.record.internal.SimpleRecord; // from 4.3.0
import org.apache.kafka.common.record.internal.UnalignedMemoryRecords; // from 4.3.0
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.feature.SupportedVersionRange;
import org.apache.kafka.common.utils.LogContext; // before 4.4.0
import org.apache.kafka.common.utils.internals.LogContext; // from 4.4.0
import org.apache.kafka.raft.internals.BatchMemoryPool;
import org.apache.kafka.raft.internals.KRaftControlRecordStateMachine;
import org.apache.kafka.raft.internals.StringSerde;
import org.apache.kafka.server.common.Feature; // from 4.0.0
import org.apache.kafka.server.common.Features; // before 4.0.0
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch; // from 4.1.0
import org.apache.kafka.snapshot.SnapshotReader;
import org.apache.kafka.snapshot.SnapshotWriter;

/**
 * KafkaRaftClient with its log on a disk, a clock that stands still, and a channel that notes what is sent.
 *
 * The voters are those of the configuration: 0, 1 and 2; then followers send no requests to update a voter. Or they
 * are those of a bootstrap snapshot, under kraft.version 1, and the bootstrap servers are 0 to 3. All random numbers
 * are 0.
 */
public final class RaftClientMember implements Subject, RaftClient.Listener<String> {
    static final TopicPartition PARTITION = new TopicPartition("__cluster_metadata", 0);
    static final Uuid TOPIC = Uuid.METADATA_TOPIC_ID;
    private static final ListenerName LISTENER = ListenerName.normalised("L");
    private static final Set<Integer> VOTERS = Set.of(0, 1, 2);
    private static final int POLLS = 4;
    private static final long CLEAN_MS = 60_000;
    private static final BatchMemoryPool MEMORY = new BatchMemoryPool(5, KafkaRaftClient.MAX_BATCH_SIZE_BYTES);
    private static final List<Object> ENDS = List.of("ends");

    /** Draws 0. */
    private static final class Zeros extends Random {
        public int nextInt(int bound) {
            return 0;
        }
    }

    /** The file quorum-state. */
    private static final class Store implements QuorumStateStore {
        private ElectionState state;

        public Optional<ElectionState> readElectionState() {
            return Optional.ofNullable(state);
        }

        public void writeElectionState(ElectionState latest, KRaftVersion version) {
            state = ElectionState.fromQuorumStateData(latest.toQuorumStateData(version.quorumStateVersion()));
        }

        public Path path() {
            return Path.of("quorum-state");
        }

        public void clear() {
            state = null;
        }
    }

    /** Messages that have arrived. */
    private static final class Messages implements RaftMessageQueue {
        private final Queue<RaftMessage> waiting = new ArrayDeque<>(); // before 4.4.0
        private final Queue<Entry> waiting = new ArrayDeque<>(); // from 4.4.0

        private record Entry(RaftMessage message, CompletableFuture<RaftMessage> future) implements QueueEntry { } // from 4.4.0

        public RaftMessage poll(long timeoutMs) { // before 4.4.0
            return waiting.poll(); // before 4.4.0
        } // before 4.4.0

        public void add(RaftMessage message) { // before 4.4.0
            waiting.add(message); // before 4.4.0
        } // before 4.4.0

        public Optional<QueueEntry> poll(long timeoutMs) { // from 4.4.0
            return Optional.ofNullable(waiting.poll()); // from 4.4.0
        } // from 4.4.0

        public CompletableFuture<RaftMessage> add(RaftMessage message) { // from 4.4.0
            Entry entry = new Entry(message, new CompletableFuture<>()); // from 4.4.0
            waiting.add(entry); // from 4.4.0
            return entry.future; // from 4.4.0
        } // from 4.4.0

        public boolean isEmpty() {
            return waiting.isEmpty();
        }

        public void wakeup() { }
    }

    /** Requests that were sent. */
    private final class Sent implements NetworkChannel {
        private int number;
        private final List<RaftRequest.Outbound> requests = new ArrayList<>();
        private final Map<Integer, CompletableFuture<RaftResponse.Inbound>> awaited = new HashMap<>();

        public int newCorrelationId() {
            return number++;
        }

        public void send(RaftRequest.Outbound request) { // before 4.4.0
            requests.add(request); // before 4.4.0
            awaited.put(request.correlationId(), request.completion); // before 4.4.0
        } // before 4.4.0

        public CompletableFuture<RaftResponse.Inbound> send(RaftRequest.Outbound request) { // from 4.4.0
            requests.add(request); // from 4.4.0
            CompletableFuture<RaftResponse.Inbound> future = new CompletableFuture<>(); // from 4.4.0
            awaited.put(request.correlationId(), future); // from 4.4.0
            return future; // from 4.4.0
        } // from 4.4.0

        public ListenerName listenerName() {
            return LISTENER;
        }

        public void close() { }
    }

    /** What fails when its time has come. */
    private final class Expirations implements ExpirationService {
        private final TreeMap<Long, List<CompletableFuture<?>>> due = new TreeMap<>();

        public <T> CompletableFuture<T> failAfter(long timeoutMs) {
            CompletableFuture<T> future = new CompletableFuture<>();
            due.computeIfAbsent(clock.nowMs + timeoutMs, at -> new ArrayList<>()).add(future);
            return future;
        }

        void expire() {
            while (!due.isEmpty() && due.firstKey() <= clock.nowMs)
                for (CompletableFuture<?> future : due.pollFirstEntry().getValue())
                    future.completeExceptionally(new TimeoutException());
        }
    }

    private Clock clock;
    private File folder;
    private Store store;
    private Messages messages;
    private Sent sent;
    private Expirations expirations;
    private Release log;
    private KafkaRaftClient<String> client;
    private Map<Integer, RaftRequest.Outbound> last;
    private List<CompletableFuture<RaftResponse.Outbound>> answers;
    private List<Object> told;
    private int local;
    private long directory;
    private int listeners;
    private boolean dynamic;
    private boolean joins;
    private long cleans;

    public List<Object> run(List<Object> operations) throws Exception {
        clock = new Clock();
        folder = Folders.next();
        store = new Store();
        local = 0;
        directory = 1;
        listeners = 0;
        dynamic = joins = false;
        last = new HashMap<>();
        List<Object> seen = new ArrayList<>();
        boolean ended = false;
        try {
            for (Object each : operations) {
                List<Object> operation = Subject.list(each);
                String name = (String) operation.get(0);
                if (ended && !name.equals("restart")) {
                    seen.add(ENDS);
                    continue;
                }
                try {
                    if (client == null && !name.equals("new"))
                        start();
                    act(name, operation);
                    poll();
                    seen.add(state());
                    ended = false;
                } catch (Exception | AssertionError problem) {
                    if (System.getenv("HW_TRACE") != null) problem.printStackTrace();
                    ended = true;
                    seen.add(ENDS);
                }
            }
        } finally {
            if (log != null)
                log.close();
            client = null;
            log = null;
            Folders.remove(folder);
        }
        return seen;
    }

    private void start() throws Exception {
        if (log != null)
            log.close();
        messages = new Messages();
        sent = new Sent();
        expirations = new Expirations();
        answers = new ArrayList<>();
        told = new ArrayList<>();
        log = null;
        log = new Release(folder, clock);
        cleans = clock.nowMs + CLEAN_MS;
        client = new KafkaRaftClient<>(OptionalInt.of(local), new Uuid(0, directory), new StringSerde(), sent,
            messages, log.log, MEMORY, clock, expirations, 0, joins, "c", servers(), endpoints(local, listeners),
            Features.KRAFT_VERSION.supportedVersionRange(), // before 4.0.0
            Feature.KRAFT_VERSION.supportedVersionRange(), // from 4.0.0
            new LogContext(), new Zeros(), log.config(joins));
        client.register(this);
        client.initialize(dynamic ? Map.of() : addresses(), store, new Metrics()); // before 4.0.0
        client.initialize(dynamic ? Map.of() : addresses(), store, new Metrics(), ignored -> { }); // from 4.0.0
        poll();
    }

    private static Map<Integer, InetSocketAddress> addresses() {
        Map<Integer, InetSocketAddress> found = new HashMap<>();
        for (int voter : VOTERS)
            found.put(voter, InetSocketAddress.createUnresolved("h", 9000 + voter));
        return found;
    }

    private List<InetSocketAddress> servers() {
        List<InetSocketAddress> found = new ArrayList<>();
        for (int server = 0; dynamic && server <= 3; server++)
            found.add(InetSocketAddress.createUnresolved("h", 9000 + server));
        return found;
    }

    private static Endpoints endpoints(int member) {
        return endpoints(member, 0);
    }

    private static Endpoints endpoints(int member, int listeners) {
        return member < 0 ? Endpoints.empty() : Endpoints.fromInetSocketAddresses(
            Map.of(LISTENER, InetSocketAddress.createUnresolved("h", 9000 + member + 100 * listeners)));
    }

    private static ReplicaKey key(int member) {
        return key(member, 0);
    }

    private static ReplicaKey key(long member, long directory) {
        return ReplicaKey.of((int) member, new Uuid(0, directory));
    }

    /** Voters: triples of id, directory and number of the listeners. */
    private static VoterSet voters(List<Object> numbers) {
        VoterSet found = VoterSet.empty();
        for (int i = 0; i + 2 < numbers.size(); i += 3) {
            int id = Subject.number(numbers.get(i));
            found = found.addVoter(VoterSet.VoterNode.of(key(id, Subject.number(numbers.get(i + 1))),
                endpoints(id, Subject.number(numbers.get(i + 2))), new SupportedVersionRange((short) 0, (short) 1))).orElse(found);
        }
        return found;
    }

    private List<Object> words(VoterSet voters) {
        List<Object> found = new ArrayList<>();
        for (VoterSet.VoterNode voter : voters.voterNodes()) {
            long port = voter.listeners().address(LISTENER).get().getPort();
            found.add(voter.voterKey().id() + ":" + directory(voter.voterKey()) + ":" + (port - 9000) / 100);
        }
        Collections.sort(found, (one, other) -> one.toString().compareTo(other.toString()));
        return found;
    }

    private KRaftControlRecordStateMachine partition() throws Exception {
        Field field = KafkaRaftClient.class.getDeclaredField("partitionState");
        field.setAccessible(true);
        return (KRaftControlRecordStateMachine) field.get(client);
    }

    private static long directory(ReplicaKey key) {
        return key.directoryId().map(Uuid::getLeastSignificantBits).orElse(0L);
    }

    private void poll() {
        for (int count = 0; count < POLLS || !messages.isEmpty(); count++) {
            if (!dynamic && client.quorum().isFollower()) // from 4.0.0
                client.quorum().followerStateOrThrow().setHasUpdatedLeader(); // from 4.0.0
            client.poll();
        }
    }

    // Operations.

    private void act(String name, List<Object> operation) throws Exception {
        long[] n = new long[operation.size()];
        for (int i = 1; i < n.length; i++)
            n[i] = operation.get(i) instanceof Long ? (Long) operation.get(i) : 0;
        int source = (int) (n.length > 1 ? n[1] : 0), epoch = (int) (n.length > 2 ? n[2] : 0);
        switch (name) {
            case "new":
                if (client == null)
                    begin(operation, n);
                break;
            case "restart":
                if (n[1] == 1)
                    for (File file : folder.listFiles())
                        if (file.getName().endsWith(".checkpoint") && Character.isDigit(file.getName().charAt(0))
                            && !file.getName().startsWith("00000000000000000000-"))
                            file.delete();
                last.clear();
                start();
                break;
            case "advance":
                advance(n[1]);
                break;
            case "append":
                client.prepareAppend(client.quorum().epoch(), List.of("x"));
                client.schedulePreparedAppend();
                break;
            case "resign":
                client.resign(client.quorum().epoch());
                break;
            case "snapshot":
                snapshot();
                break;
            case "vote":
                ReplicaKey candidate = key(source, at(n, 6)), voter = key(local, at(n, 7));
                ask(RaftUtil.singletonVoteRequest(PARTITION, null, epoch, candidate, voter, (int) n[3], n[4]), 1); // before 4.0.0
                ask(RaftUtil.singletonVoteRequest(PARTITION, null, epoch, candidate, voter, (int) n[3], n[4], // from 4.0.0
                    n[5] == 1), 2); // from 4.0.0
                break;
            case "begin":
                ask(RaftUtil.singletonBeginQuorumEpochRequest(PARTITION, null, epoch, source, endpoints(source), key(local, at(n, 3))), 1);
                break;
            case "end":
                List<ReplicaKey> successors = new ArrayList<>();
                for (Object successor : Subject.list(operation.get(3)))
                    successors.add(key(Subject.number(successor), at(n, 4)));
                ask(RaftUtil.singletonEndQuorumEpochRequest(PARTITION, null, epoch, source, successors), 1);
                break;
            case "fetch":
                long from = dynamic ? log.beginOfBatch(n[3]) : n[3];
                FetchRequestData fetch = RaftUtil.singletonFetchRequest(PARTITION, TOPIC, one -> {
                    one.setCurrentLeaderEpoch(epoch).setLastFetchedEpoch((int) n[4]).setFetchOffset(from);
                    one.setReplicaDirectoryId(new Uuid(0, at(n, 7)));
                    one.setHighWatermark(n[5]); // from 4.1.0
                });
                fetch.setMaxWaitMs((int) n[6]).setReplicaState(new FetchRequestData.ReplicaState().setReplicaId(source));
                fetch.setMaxBytes(Integer.MAX_VALUE);
                ask(fetch, log.fetchVersion());
                break;
            case "fetch-snapshot":
                ask(RaftUtil.singletonFetchSnapshotRequest(null, key(source, at(n, 5)), PARTITION, epoch,
                    new OffsetAndEpoch(n[3], (int) n[4]), Integer.MAX_VALUE, 0), 1);
                break;
            case "add-voter":
                ask(RaftUtil.addVoterRequest("c", 0, key(n[1], n[2]), endpoints((int) n[1])), 0); // before 4.2.0
                ask(RaftUtil.addVoterRequest("c", 0, key(n[1], n[2]), endpoints((int) n[1]), n[3] == 1), 1); // from 4.2.0
                break;
            case "remove-voter":
                ask(RaftUtil.removeVoterRequest("c", key(n[1], n[2])), 0);
                break;
            case "update-voter":
                ask(RaftUtil.updateVoterRequest("c", key(n[1], n[3]), epoch, new SupportedVersionRange((short) 0, (short) n[5]),
                    endpoints(source, (int) n[4])), 0);
                break;
            case "respond":
                respond(operation, n);
                break;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** Time passes, with a poll whenever the client looks for old snapshots. */
    private void advance(long ms) {
        long end = clock.nowMs + ms;
        while (cleans <= end) {
            clock.nowMs = cleans;
            cleans += CLEAN_MS;
            expirations.expire();
            poll();
        }
        clock.nowMs = end;
        expirations.expire();
    }

    /** The first process: what quorum-state has, and the epochs of the records in the log. */
    private void begin(List<Object> operation, long[] n) throws Exception {
        local = (int) n[1];
        int epoch = (int) n[2], leader = (int) n[3], voted = (int) n[4];
        store.state = leader >= 0
            ? ElectionState.withElectedLeader(epoch, leader, VOTERS) // before 4.0.0
            ? ElectionState.withElectedLeader(epoch, leader, voted < 0 ? Optional.empty() : Optional.of(key(voted)), VOTERS) // from 4.0.0
            : voted >= 0 ? ElectionState.withVotedCandidate(epoch, key(voted), VOTERS)
            : ElectionState.withUnknownLeader(epoch, VOTERS);
        Release before = new Release(folder, clock);
        if (operation.size() > 6) {
            dynamic = true;
            directory = n[7];
            listeners = (int) n[8];
            joins = n[9] == 1;
            if (!Subject.list(operation.get(6)).isEmpty())
                before.bootstrap(voters(Subject.list(operation.get(6))));
        }
        int offset = 0;
        for (Object each : Subject.list(operation.get(5)))
            before.append(batch(offset++, Subject.number(each), "a"), Subject.number(each));
        before.close();
        start();
    }

    private static long at(long[] numbers, int place) {
        return place < numbers.length ? numbers[place] : 0;
    }

    /** A VotersRecord, and before it maybe a KRaftVersionRecord. */
    private MemoryRecords voters(long offset, int epoch, List<Object> numbers, boolean version) {
        ByteBuffer buffer = ByteBuffer.allocate(4096);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
            TimestampType.CREATE_TIME, offset, clock.nowMs, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
            RecordBatch.NO_SEQUENCE, false, true, epoch, buffer.capacity());
        if (version)
            builder.appendKRaftVersionMessage(clock.nowMs, new KRaftVersionRecord().setVersion((short) 0).setKRaftVersion((short) 1));
        builder.appendVotersMessage(clock.nowMs, voters(numbers).toVotersRecord((short) 0));
        return builder.build();
    }

    private MemoryRecords batch(long offset, int epoch, String value) {
        return MemoryRecords.withRecords(RecordBatch.CURRENT_MAGIC_VALUE, offset, Compression.NONE,
            TimestampType.CREATE_TIME, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
            RecordBatch.NO_SEQUENCE, epoch, false, new SimpleRecord(clock.nowMs, value.getBytes()));
    }

    /** The process makes a snapshot of all that it knows to be committed. */
    private void snapshot() {
        long offset = client.highWatermark().orElse(0L);
        if (offset == 0)
            return;
        int epoch = log.epochAt(offset);
        try {
            Optional<SnapshotWriter<String>> writer = client.createSnapshot(new OffsetAndEpoch(offset, epoch), clock.nowMs);
            if (writer.isPresent()) {
                writer.get().freeze();
                writer.get().close();
            }
        } catch (IllegalArgumentException isLogged) { } // Below the last snapshot, after a restart.
    }

    private void ask(ApiMessage data, int version) {
        RaftRequest.Inbound request = new RaftRequest.Inbound(LISTENER, sent.newCorrelationId(), (short) version, data, clock.nowMs);
        answers.add(request.completion); // before 4.4.0
        client.handle(request); // before 4.4.0
        answers.add(client.handle(request).toCompletableFuture()); // from 4.4.0
    }

    private void respond(List<Object> operation, long[] n) {
        int source = (int) n[1], epoch = (int) n[3], leader = (int) n[4];
        RaftRequest.Outbound request = last.get(source);
        if (request == null)
            return;
        Errors error = Errors.valueOf((String) operation.get(2));
        List<Object> content = Subject.list(operation.get(5));
        long[] c = new long[Math.max(4, content.size())];
        for (int i = 0; i < content.size(); i++)
            c[i] = Subject.offset(content.get(i));
        Endpoints there = endpoints(leader);
        int number = Math.max(log.log.lastFetchedEpoch(), Math.min((int) c[1], client.quorum().epoch()));
        ApiMessage data;
        if (request.data() instanceof VoteRequestData)
            data = RaftUtil.singletonVoteResponse(LISTENER, (short) log.voteVersion(), Errors.NONE, PARTITION, error, epoch, leader, c[0] % 2 == 1, there);
        else if (request.data() instanceof BeginQuorumEpochRequestData)
            data = RaftUtil.singletonBeginQuorumEpochResponse(LISTENER, (short) 1, Errors.NONE, PARTITION, error, epoch, leader, there);
        else if (request.data() instanceof EndQuorumEpochRequestData)
            data = RaftUtil.singletonEndQuorumEpochResponse(LISTENER, (short) 1, Errors.NONE, PARTITION, error, epoch, leader, there);
        else if (request.data() instanceof FetchSnapshotRequestData)
            data = snapshotResponse(request, error, epoch, leader, (int) c[0], content);
        else if (request.data() instanceof ApiVersionsRequestData)
            data = versions(error, c[0]);
        else if (request.data() instanceof AddRaftVoterRequestData)
            data = new AddRaftVoterResponseData().setErrorCode(error.code());
        else if (request.data() instanceof RemoveRaftVoterRequestData)
            data = new RemoveRaftVoterResponseData().setErrorCode(error.code());
        else if (request.data() instanceof UpdateRaftVoterRequestData)
            data = RaftUtil.updateVoterResponse(error, LISTENER,
                new LeaderAndEpoch(leader < 0 ? OptionalInt.empty() : OptionalInt.of(leader), epoch), there);
        else
            data = RaftUtil.singletonFetchResponse(LISTENER, (short) log.fetchVersion(), PARTITION, TOPIC, Errors.NONE, leader, there, one -> {
                one.setErrorCode(error.code()).setHighWatermark(c[3]);
                one.currentLeader().setLeaderEpoch(epoch).setLeaderId(leader);
                one.setRecords(MemoryRecords.EMPTY);
                if (dynamic) {
                    one.setHighWatermark(c[0] == 5 && c[3] == log.end() + 1 ? log.end() : log.beginOfBatch(c[3]));
                    c[2] = c[0] == 2 ? log.beginOfBatch(c[2]) : c[2];
                }
                if (c[0] == 1)
                    one.setRecords(batch(log.end(), number, "y"));
                else if (c[0] == 4 || c[0] == 5)
                    one.setRecords(voters(log.end(), number, content.subList(4, content.size()), c[0] == 5));
                else if (c[0] == 2)
                    one.divergingEpoch().setEpoch((int) c[1]).setEndOffset(c[2]);
                else if (c[0] == 3)
                    one.snapshotId().setEpoch(number).setEndOffset(c[2]);
            });
        CompletableFuture<RaftResponse.Inbound> future = sent.awaited.get(request.correlationId());
        RaftResponse.Inbound response = new RaftResponse.Inbound(request.correlationId(), data, request.destination());
        if (!future.complete(response))
            messages.add(response); // Again.
    }

    private static ApiMessage versions(Errors error, long most) {
        ApiVersionsResponseData data = new ApiVersionsResponseData().setErrorCode(error.code());
        if (most >= 0)
            data.supportedFeatures().add(new ApiVersionsResponseData.SupportedFeatureKey()
                .setName(KRaftVersion.FEATURE_NAME).setMinVersion((short) 0).setMaxVersion((short) most));
        return data;
    }

    /** All of the snapshot that was asked for; kind 1: it is not there. */
    private ApiMessage snapshotResponse(RaftRequest.Outbound request, Errors error, int epoch, int leader, int kind,
            List<Object> content) {
        FetchSnapshotRequestData.PartitionSnapshot asked =
            ((FetchSnapshotRequestData) request.data()).topics().get(0).partitions().get(0);
        OffsetAndEpoch id = new OffsetAndEpoch(asked.snapshotId().endOffset(), asked.snapshotId().epoch());
        MemoryRecords bytes = Bytes.of(id, clock.nowMs,
            content.size() > 4 ? Optional.of(voters(content.subList(4, content.size()))) : Optional.empty());
        return RaftUtil.singletonFetchSnapshotResponse(LISTENER, (short) 1, PARTITION, leader, endpoints(leader), one -> {
            one.currentLeader().setLeaderEpoch(epoch).setLeaderId(leader);
            one.setErrorCode(kind == 1 && error == Errors.NONE ? Errors.SNAPSHOT_NOT_FOUND.code() : error.code());
            if (kind != 1 && error == Errors.NONE) {
                one.snapshotId().setEndOffset(id.offset()).setEpoch(id.epoch());
                one.setPosition(0).setSize(bytes.sizeInBytes()).setUnalignedRecords(new UnalignedMemoryRecords(bytes.buffer()));
            }
            return one;
        });
    }

    // What the listener is told.

    public void handleCommit(BatchReader<String> reader) {
        long from = reader.baseOffset(), end = from;
        while (reader.hasNext())
            end = reader.next().lastOffset() + 1;
        reader.close();
        int size = told.size();
        if (size > 0) {
            List<Object> before = Subject.list(told.get(size - 1));
            if (before.get(0).equals("commit") && before.get(2).equals(from)) {
                told.set(size - 1, Arrays.asList("commit", before.get(1), end));
                return;
            }
        }
        told.add(Arrays.asList("commit", from, end));
    }

    public void handleLoadSnapshot(SnapshotReader<String> reader) {
        if (reader.snapshotId().offset() > 0)
            told.add(Arrays.asList("snapshot", reader.snapshotId().offset(), (long) reader.snapshotId().epoch()));
        reader.close();
    }

    public void handleLoadBootstrap(SnapshotReader<String> reader) { // from 4.1.0
        reader.close(); // from 4.1.0
    } // from 4.1.0

    public void handleLeaderChange(LeaderAndEpoch leader) {
        told.add(Arrays.asList("leader", (long) leader.leaderId().orElse(-1), (long) leader.epoch()));
    }

    // What is to be seen.

    private List<Object> state() throws Exception {
        QuorumState quorum = client.quorum();
        ElectionState stored = store.state;
        String name = quorum.isLeader() ? "Leader" : quorum.isCandidate() ? "Candidate" : quorum.isFollower() ? "Follower"
            : quorum.isProspective() ? "Prospective" // from 4.0.0
            : quorum.isUnattached() ? "Unattached" : "Resigned";
        List<Object> requests = new ArrayList<>();
        for (RaftRequest.Outbound request : sent.requests) {
            last.put(request.destination().id(), request);
            requests.add(request.destination().id() + ":" + words(request.data()));
        }
        sent.requests.clear();
        Collections.sort(requests, (one, other) -> one.toString().compareTo(other.toString()));
        List<Object> given = new ArrayList<>();
        for (CompletableFuture<RaftResponse.Outbound> answer : new ArrayList<>(answers))
            if (answer.isDone()) {
                answers.remove(answer);
                given.add(said(answer.get().data()));
            }
        Collections.sort(given, (one, other) -> one.toString().compareTo(other.toString()));
        List<Object> saw = told;
        told = new ArrayList<>();
        List<Object> all = new ArrayList<>(Arrays.asList(name, (long) quorum.epoch(), (long) quorum.leaderIdOrSentinel(),
            Arrays.asList((long) stored.epoch(), (long) stored.leaderIdOrSentinel(),
                stored.optionalVotedKey().map(key -> (long) key.id()).orElse(-1L)),
            log.start(), log.end(), (long) log.log.lastFetchedEpoch(),
            quorum.highWatermark().map(LogOffsetMetadata::offset).orElse(-1L), log.snapshots(), requests, given, saw));
        if (dynamic)
            all.add(Arrays.asList(words(partition().lastVoterSet()), quorum.isVoter(),
                (long) partition().lastKraftVersion().featureLevel(),
                stored.optionalVotedKey().map(key -> directory(key)).orElse(0L)));
        return all;
    }

    private static String words(ApiMessage data) {
        if (data instanceof VoteRequestData) {
            VoteRequestData.PartitionData one = ((VoteRequestData) data).topics().get(0).partitions().get(0);
            return "vote " + one.candidateEpoch() + " " + one.lastOffsetEpoch() + " " + one.lastOffset(); // before 4.0.0
            return (one.preVote() ? "prevote " : "vote ") + one.replicaEpoch() + " " + one.lastOffsetEpoch() + " " + one.lastOffset(); // from 4.0.0
        }
        if (data instanceof BeginQuorumEpochRequestData)
            return "begin " + ((BeginQuorumEpochRequestData) data).topics().get(0).partitions().get(0).leaderEpoch();
        if (data instanceof EndQuorumEpochRequestData) {
            EndQuorumEpochRequestData.PartitionData one = ((EndQuorumEpochRequestData) data).topics().get(0).partitions().get(0);
            List<Integer> successors = new ArrayList<>();
            for (EndQuorumEpochRequestData.ReplicaInfo replica : one.preferredCandidates())
                successors.add(replica.candidateId());
            return "end " + one.leaderEpoch() + " " + successors;
        }
        if (data instanceof FetchSnapshotRequestData) {
            FetchSnapshotRequestData.PartitionSnapshot one = ((FetchSnapshotRequestData) data).topics().get(0).partitions().get(0);
            return "fetch-snapshot " + one.currentLeaderEpoch() + " " + one.snapshotId().endOffset() + " " + one.snapshotId().epoch();
        }
        if (data instanceof ApiVersionsRequestData)
            return "versions";
        if (data instanceof AddRaftVoterRequestData)
            return "add " + ((AddRaftVoterRequestData) data).voterId() + " " + ((AddRaftVoterRequestData) data).voterDirectoryId().getLeastSignificantBits();
        if (data instanceof RemoveRaftVoterRequestData)
            return "remove " + ((RemoveRaftVoterRequestData) data).voterId() + " " + ((RemoveRaftVoterRequestData) data).voterDirectoryId().getLeastSignificantBits();
        if (data instanceof UpdateRaftVoterRequestData)
            return "update " + ((UpdateRaftVoterRequestData) data).currentLeaderEpoch();
        FetchRequestData.FetchPartition one = ((FetchRequestData) data).topics().get(0).partitions().get(0);
        return "fetch " + one.currentLeaderEpoch() + " " + one.fetchOffset() + " " + one.lastFetchedEpoch()
            + " " + one.highWatermark() // from 4.1.0
            ;
    }

    private static String said(ApiMessage data) {
        if (data instanceof VoteResponseData) {
            VoteResponseData.PartitionData one = ((VoteResponseData) data).topics().get(0).partitions().get(0);
            return "vote " + Errors.forCode(one.errorCode()) + " " + one.leaderEpoch() + " " + one.leaderId() + " " + one.voteGranted();
        }
        if (data instanceof BeginQuorumEpochResponseData) {
            BeginQuorumEpochResponseData.PartitionData one = ((BeginQuorumEpochResponseData) data).topics().get(0).partitions().get(0);
            return "begin " + Errors.forCode(one.errorCode()) + " " + one.leaderEpoch() + " " + one.leaderId();
        }
        if (data instanceof EndQuorumEpochResponseData) {
            EndQuorumEpochResponseData.PartitionData one = ((EndQuorumEpochResponseData) data).topics().get(0).partitions().get(0);
            return "end " + Errors.forCode(one.errorCode()) + " " + one.leaderEpoch() + " " + one.leaderId();
        }
        if (data instanceof FetchSnapshotResponseData) {
            FetchSnapshotResponseData.PartitionSnapshot one = ((FetchSnapshotResponseData) data).topics().get(0).partitions().get(0);
            return "fetch-snapshot " + Errors.forCode(one.errorCode()) + " " + one.currentLeader().leaderEpoch() + " "
                + one.currentLeader().leaderId() + " " + one.snapshotId().endOffset() + " " + one.snapshotId().epoch();
        }
        if (data instanceof AddRaftVoterResponseData)
            return "add " + Errors.forCode(((AddRaftVoterResponseData) data).errorCode());
        if (data instanceof RemoveRaftVoterResponseData)
            return "remove " + Errors.forCode(((RemoveRaftVoterResponseData) data).errorCode());
        if (data instanceof UpdateRaftVoterResponseData) {
            UpdateRaftVoterResponseData one = (UpdateRaftVoterResponseData) data;
            return "update " + Errors.forCode(one.errorCode()) + " " + one.currentLeader().leaderEpoch() + " " + one.currentLeader().leaderId();
        }
        FetchResponseData.PartitionData one = ((FetchResponseData) data).responses().get(0).partitions().get(0);
        int records = 0;
        for (RecordBatch batch : ((Records) one.records()).batches())
            records += batch.countOrNull();
        return "fetch " + Errors.forCode(one.errorCode()) + " " + one.currentLeader().leaderEpoch() + " " + one.currentLeader().leaderId()
            + " records " + records + " hw " + one.highWatermark() + " diverging " + one.divergingEpoch().epoch() + " "
            + one.divergingEpoch().endOffset() + " snapshot " + one.snapshotId().endOffset() + " " + one.snapshotId().epoch();
    }
}
