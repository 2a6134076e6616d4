package org.apache.kafka.raft;

import java.io.File;
import java.net.InetSocketAddress;
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
import org.apache.kafka.common.message.BeginQuorumEpochRequestData;
import org.apache.kafka.common.message.BeginQuorumEpochResponseData;
import org.apache.kafka.common.message.EndQuorumEpochRequestData;
import org.apache.kafka.common.message.EndQuorumEpochResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FetchSnapshotRequestData;
import org.apache.kafka.common.message.FetchSnapshotResponseData;
import org.apache.kafka.common.message.VoteRequestData;
import org.apache.kafka.common.message.VoteResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.RecordBatch; // before 4.3.0
import org.apache.kafka.common.record.Records; // before 4.3.0
import org.apache.kafka.common.record.SimpleRecord; // before 4.3.0
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.UnalignedMemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.internal.MemoryRecords; // from 4.3.0
import org.apache.kafka.common.record.internal.RecordBatch; // from 4.3.0
import org.apache.kafka.common.record.internal.Records; // from 4.3.0
import org.apache.kafka.common.record.internal.SimpleRecord; // from 4.3.0
import org.apache.kafka.common.record.internal.UnalignedMemoryRecords; // from 4.3.0
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.utils.LogContext; // before 4.4.0
import org.apache.kafka.common.utils.internals.LogContext; // from 4.4.0
import org.apache.kafka.raft.internals.BatchMemoryPool;
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
 * The voters are 0, 1 and 2. All random numbers are 0. Followers send no requests to update a voter.
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
            state = latest;
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
    private long cleans;

    public List<Object> run(List<Object> operations) throws Exception {
        clock = new Clock();
        folder = Folders.next();
        store = new Store();
        local = 0;
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
        client = new KafkaRaftClient<>(OptionalInt.of(local), Uuid.fromString("AAAAAAAAAAAAAAAAAAAAAQ"), new StringSerde(), sent,
            messages, log.log, MEMORY, clock, expirations, 0, false, "c", List.of(), endpoints(local),
            Features.KRAFT_VERSION.supportedVersionRange(), // before 4.0.0
            Feature.KRAFT_VERSION.supportedVersionRange(), // from 4.0.0
            new LogContext(), new Zeros(), log.config());
        client.register(this);
        client.initialize(addresses(), store, new Metrics()); // before 4.0.0
        client.initialize(addresses(), store, new Metrics(), ignored -> { }); // from 4.0.0
        poll();
    }

    private static Map<Integer, InetSocketAddress> addresses() {
        Map<Integer, InetSocketAddress> found = new HashMap<>();
        for (int voter : VOTERS)
            found.put(voter, InetSocketAddress.createUnresolved("h", 9000 + voter));
        return found;
    }

    private static Endpoints endpoints(int member) {
        return member < 0 ? Endpoints.empty() : Endpoints.fromInetSocketAddresses(
            Map.of(LISTENER, InetSocketAddress.createUnresolved("h", 9000 + member)));
    }

    private static ReplicaKey key(int member) {
        return ReplicaKey.of(member, ReplicaKey.NO_DIRECTORY_ID);
    }

    private void poll() {
        for (int count = 0; count < POLLS || !messages.isEmpty(); count++) {
            if (client.quorum().isFollower()) // from 4.0.0
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
                        if (file.getName().endsWith(".checkpoint") && Character.isDigit(file.getName().charAt(0)))
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
                ask(RaftUtil.singletonVoteRequest(PARTITION, null, epoch, key(source), key(local), (int) n[3], n[4]), 1); // before 4.0.0
                ask(RaftUtil.singletonVoteRequest(PARTITION, null, epoch, key(source), key(local), (int) n[3], n[4], // from 4.0.0
                    n[5] == 1), 2); // from 4.0.0
                break;
            case "begin":
                ask(RaftUtil.singletonBeginQuorumEpochRequest(PARTITION, null, epoch, source, endpoints(source), key(local)), 1);
                break;
            case "end":
                List<ReplicaKey> successors = new ArrayList<>();
                for (Object successor : Subject.list(operation.get(3)))
                    successors.add(key(Subject.number(successor)));
                ask(RaftUtil.singletonEndQuorumEpochRequest(PARTITION, null, epoch, source, successors), 1);
                break;
            case "fetch":
                FetchRequestData fetch = RaftUtil.singletonFetchRequest(PARTITION, TOPIC, one -> {
                    one.setCurrentLeaderEpoch(epoch).setLastFetchedEpoch((int) n[4]).setFetchOffset(n[3]);
                    one.setReplicaDirectoryId(ReplicaKey.NO_DIRECTORY_ID);
                    one.setHighWatermark(n[5]); // from 4.1.0
                });
                fetch.setMaxWaitMs((int) n[6]).setReplicaState(new FetchRequestData.ReplicaState().setReplicaId(source));
                fetch.setMaxBytes(Integer.MAX_VALUE);
                ask(fetch, log.fetchVersion());
                break;
            case "fetch-snapshot":
                ask(RaftUtil.singletonFetchSnapshotRequest(null, key(source), PARTITION, epoch,
                    new OffsetAndEpoch(n[3], (int) n[4]), Integer.MAX_VALUE, 0), 1);
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
        int offset = 0;
        for (Object each : Subject.list(operation.get(5)))
            before.append(batch(offset++, Subject.number(each), "a"), Subject.number(each));
        before.close();
        start();
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
        long[] c = new long[4];
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
            data = snapshotResponse(request, error, epoch, leader, (int) c[0]);
        else
            data = RaftUtil.singletonFetchResponse(LISTENER, (short) log.fetchVersion(), PARTITION, TOPIC, Errors.NONE, leader, there, one -> {
                one.setErrorCode(error.code()).setHighWatermark(c[3]);
                one.currentLeader().setLeaderEpoch(epoch).setLeaderId(leader);
                one.setRecords(MemoryRecords.EMPTY);
                if (c[0] == 1)
                    one.setRecords(batch(log.end(), number, "y"));
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

    /** All of the snapshot that was asked for; kind 1: it is not there. */
    private ApiMessage snapshotResponse(RaftRequest.Outbound request, Errors error, int epoch, int leader, int kind) {
        FetchSnapshotRequestData.PartitionSnapshot asked =
            ((FetchSnapshotRequestData) request.data()).topics().get(0).partitions().get(0);
        OffsetAndEpoch id = new OffsetAndEpoch(asked.snapshotId().endOffset(), asked.snapshotId().epoch());
        MemoryRecords bytes = Bytes.of(id, clock.nowMs);
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
        return Arrays.asList(name, (long) quorum.epoch(), (long) quorum.leaderIdOrSentinel(),
            Arrays.asList((long) stored.epoch(), (long) stored.leaderIdOrSentinel(),
                stored.optionalVotedKey().map(key -> (long) key.id()).orElse(-1L)),
            log.start(), log.end(), (long) log.log.lastFetchedEpoch(),
            quorum.highWatermark().map(LogOffsetMetadata::offset).orElse(-1L), log.snapshots(), requests, given, saw);
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
        FetchResponseData.PartitionData one = ((FetchResponseData) data).responses().get(0).partitions().get(0);
        int records = 0;
        for (RecordBatch batch : ((Records) one.records()).batches())
            records += batch.countOrNull();
        return "fetch " + Errors.forCode(one.errorCode()) + " " + one.currentLeader().leaderEpoch() + " " + one.currentLeader().leaderId()
            + " records " + records + " hw " + one.highWatermark() + " diverging " + one.divergingEpoch().epoch() + " "
            + one.divergingEpoch().endOffset() + " snapshot " + one.snapshotId().endOffset() + " " + one.snapshotId().epoch();
    }
}
