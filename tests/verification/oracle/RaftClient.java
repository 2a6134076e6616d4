package org.apache.kafka.raft;
import java.io.*;
import java.lang.reflect.Field;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.server.common.KRaftVersion;
/**
 * A KafkaRaftClient in RaftClientTestContext that carries out the lines of driving_raft.py and prints what it shows.
 *
 * Needs the jars and test jars of kafka-raft, kafka-clients and kafka-server-common, JUnit, Mockito and Jackson; it reads
 * lines from standard input. This is the one for 4.3.1. In 4.1.2 the record classes are in org.apache.kafka.common.record.
 * 3.9.0 has no pre-votes and no high watermark in fetches: its protocol is withKip853Rpc(true), votes and fetches have
 * older versions, and drainSentResponses is private.
 */
public class RaftClient {
    static RaftClientTestContext context; static QuorumStateStore store; static PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16));
    static Map<Integer, RaftRequest.Outbound> last = new HashMap<>(); static boolean dead;
    static Set<Integer> voters = Set.of(0, 1, 2);
    static ReplicaKey key(int id) { return ReplicaKey.of(id, ReplicaKey.NO_DIRECTORY_ID); }
    static OptionalInt opt(int id) { return id < 0 ? OptionalInt.empty() : OptionalInt.of(id); }
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in)); String line;
        while ((line = in.readLine()) != null) {
            String[] w = line.split(" ");
            if (w[0].equals("new")) { begin(w); dead = false; show(true); continue; }
            if (dead) { out.println("dead"); continue; }
            try { act(w); for (int i = 0; i < 4; i++) context.client.poll(); show(false); }
            catch (Throwable e) { dead = true; out.println("throws"); if (args.length > 0) e.printStackTrace(out); }
        }
        out.flush();
    }
    static void begin(String[] w) throws Exception {
        RaftClientTestContext.Builder b = new RaftClientTestContext.Builder(Integer.parseInt(w[1]), voters).withRaftProtocol(RaftClientTestContext.RaftProtocol.KIP_1166_PROTOCOL);
        Field f = b.getClass().getDeclaredField("quorumStateStore"); f.setAccessible(true); store = (QuorumStateStore) f.get(b);
        Field r = b.getClass().getDeclaredField("random"); r.setAccessible(true); ((MockableRandom) r.get(b)).mockNextInt(0);
        int epoch = Integer.parseInt(w[2]), leader = Integer.parseInt(w[3]), voted = Integer.parseInt(w[4]);
        ElectionState e = leader >= 0 ? ElectionState.withElectedLeader(epoch, leader, voted < 0 ? Optional.empty() : Optional.of(key(voted)), voters)
            : voted >= 0 ? ElectionState.withVotedCandidate(epoch, key(voted), voters) : ElectionState.withUnknownLeader(epoch, voters);
        store.writeElectionState(e, KRaftVersion.KRAFT_VERSION_0);
        if (!w[5].equals("-")) for (String part : w[5].split(",")) b.appendToLog(Integer.parseInt(part), List.of("a"));
        last.clear(); context = b.build(); for (int i = 0; i < 4; i++) context.client.poll();
    }
    static void act(String[] w) throws Exception {
        int[] n = new int[w.length]; for (int i = 1; i < w.length; i++) try { n[i] = Integer.parseInt(w[i]); } catch (NumberFormatException e) { }
        switch (w[0]) {
            case "advance": context.time.sleep(n[1]); break;
            case "vote": context.deliverRequest(w[6].equals("pre") ? context.preVoteRequest(n[2], key(n[1]), n[3], n[4]) : context.voteRequest(n[2], key(n[1]), n[3], n[4])); break;
            case "begin": context.deliverRequest(context.beginEpochRequest(n[2], n[1])); break;
            case "end": context.deliverRequest(context.endEpochRequest(n[2], n[1], w.length > 3 && !w[3].equals("-") ? Arrays.stream(w[3].split(",")).map(s -> key(Integer.parseInt(s))).collect(Collectors.toList()) : List.of())); break;
            case "fetch": context.deliverRequest(context.fetchRequest(n[2], key(n[1]), n[3], n[4], n[5] < 0 ? OptionalLong.empty() : OptionalLong.of(n[5]), n[6])); break;
            case "append": context.client.prepareAppend(context.client.quorum().epoch(), List.of("x")); context.client.schedulePreparedAppend(); break;
            case "resign": context.client.resign(context.client.quorum().epoch()); break;
            case "respond": respond(w, n); break;
            default: throw new IllegalArgumentException(w[0]);
        }
    }
    static void respond(String[] w, int[] n) throws Exception {
        RaftRequest.Outbound q = last.get(n[1]); Errors error = Errors.valueOf(w[2]); int epoch = n[3], leader = n[4];
        ApiMessage data;
        if (q.data() instanceof VoteRequestData) data = context.voteResponse(error, w[5].equals("true"), opt(leader), epoch, (short) 2);
        else if (q.data() instanceof BeginQuorumEpochRequestData) data = RaftUtil.singletonBeginQuorumEpochResponse(context.channel.listenerName(), (short) 1, Errors.NONE, context.metadataPartition, error, epoch, leader, leader < 0 ? Endpoints.empty() : context.startingVoters.listeners(leader));
        else if (q.data() instanceof EndQuorumEpochRequestData) data = RaftUtil.singletonEndQuorumEpochResponse(context.channel.listenerName(), (short) 1, Errors.NONE, context.metadataPartition, error, epoch, leader, leader < 0 ? Endpoints.empty() : context.startingVoters.listeners(leader));
        else if (w[5].equals("diverging")) data = context.divergingFetchResponse(epoch, leader, n[7], n[6], n[8]);
        else { Records records = w[5].equals("-") ? MemoryRecords.EMPTY : context.buildBatch(context.log.endOffset().offset(), n[5], List.of("y"));
            data = RaftUtil.singletonFetchResponse(context.channel.listenerName(), (short) 18, context.metadataPartition, context.metadataTopicId, Errors.NONE, leader, leader < 0 ? Endpoints.empty() : context.startingVoters.listeners(leader), p -> { p.setRecords(records).setErrorCode(error.code()).setHighWatermark(n[6]); p.currentLeader().setLeaderEpoch(epoch).setLeaderId(leader); }); }
        context.deliverResponse(q.correlationId(), q.destination(), data);
    }
    static void show(boolean first) throws Exception {
        QuorumState q = context.client.quorum();
        String state = q.isLeader() ? "Leader" : q.isCandidate() ? "Candidate" : q.isProspective() ? "Prospective" : q.isFollower() ? "Follower" : q.isUnattached() ? "Unattached" : "Resigned";
        ElectionState e = store.readElectionState().get();
        StringBuilder s = new StringBuilder(state + " " + q.epoch() + " " + q.leaderIdOrSentinel() + " " + e.epoch() + "/" + e.leaderIdOrSentinel() + "/" + e.optionalVotedKey().map(ReplicaKey::id).orElse(-1)
            + " " + context.log.endOffset().offset() + "/" + context.log.lastFetchedEpoch() + " hw " + q.highWatermark().map(LogOffsetMetadata::offset).orElse(-1L));
        List<String> sent = new ArrayList<>();
        for (RaftRequest.Outbound r : context.channel.drainSendQueue()) {
            last.put(r.destination().id(), r); String to = r.destination().id() + ":";
            ApiMessage d = r.data();
            if (d instanceof VoteRequestData) { VoteRequestData.PartitionData p = ((VoteRequestData) d).topics().get(0).partitions().get(0); sent.add(to + (p.preVote() ? "prevote " : "vote ") + p.replicaEpoch() + " " + p.lastOffsetEpoch() + " " + p.lastOffset()); }
            else if (d instanceof BeginQuorumEpochRequestData) sent.add(to + "begin " + ((BeginQuorumEpochRequestData) d).topics().get(0).partitions().get(0).leaderEpoch());
            else if (d instanceof EndQuorumEpochRequestData) { EndQuorumEpochRequestData.PartitionData p = ((EndQuorumEpochRequestData) d).topics().get(0).partitions().get(0); sent.add(to + "end " + p.leaderEpoch() + " " + p.preferredSuccessors()); }
            else if (d instanceof FetchRequestData) { FetchRequestData.FetchPartition p = ((FetchRequestData) d).topics().get(0).partitions().get(0); sent.add(to + "fetch " + p.currentLeaderEpoch() + " " + p.fetchOffset() + " " + p.lastFetchedEpoch() + " " + p.highWatermark()); }
            else sent.add(to + d.getClass().getSimpleName());
        }
        Collections.sort(sent); s.append(" | ").append(String.join(", ", sent)).append(" | ");
        List<String> answers = new ArrayList<>();
        for (ApiKeys k : List.of(ApiKeys.VOTE, ApiKeys.BEGIN_QUORUM_EPOCH, ApiKeys.END_QUORUM_EPOCH, ApiKeys.FETCH)) for (RaftResponse.Outbound r : context.drainSentResponses(k)) {
            ApiMessage d = r.data();
            if (d instanceof VoteResponseData) { VoteResponseData.PartitionData p = ((VoteResponseData) d).topics().get(0).partitions().get(0); answers.add("vote " + Errors.forCode(p.errorCode()) + " " + p.leaderEpoch() + " " + p.leaderId() + " " + p.voteGranted()); }
            else if (d instanceof BeginQuorumEpochResponseData) { var p = ((BeginQuorumEpochResponseData) d).topics().get(0).partitions().get(0); answers.add("begin " + Errors.forCode(p.errorCode()) + " " + p.leaderEpoch() + " " + p.leaderId()); }
            else if (d instanceof EndQuorumEpochResponseData) { var p = ((EndQuorumEpochResponseData) d).topics().get(0).partitions().get(0); answers.add("end " + Errors.forCode(p.errorCode()) + " " + p.leaderEpoch() + " " + p.leaderId()); }
            else { FetchResponseData.PartitionData p = ((FetchResponseData) d).responses().get(0).partitions().get(0); int records = 0; for (RecordBatch x : ((Records) p.records()).batches()) records += x.countOrNull();
                answers.add("fetch " + Errors.forCode(p.errorCode()) + " " + p.currentLeader().leaderEpoch() + " " + p.currentLeader().leaderId() + " records " + records + " hw " + p.highWatermark() + " diverging " + p.divergingEpoch().epoch() + " " + p.divergingEpoch().endOffset()); }
        }
        Collections.sort(answers); s.append(String.join(", ", answers)); out.println(s);
    }
}
