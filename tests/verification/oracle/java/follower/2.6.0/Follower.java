package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set; // from 4.1.0

import kafka.cluster.BrokerEndPoint; // before 4.1.0
import kafka.common.UnexpectedAppendOffsetException; // before 4.1.0
import kafka.log.LeaderOffsetIncremented$; // before 3.9.0
import kafka.log.Log; // before 3.9.0
import kafka.log.LogAppendInfo; // before 3.9.0
import kafka.log.UnifiedLog; // from 3.9.0 before 4.1.0
import kafka.server.AbstractFetcherThread;
import kafka.server.AbstractFetcherThread.ReplicaFetch; // before 4.1.0
import kafka.server.AbstractFetcherThread.ResultWithPartitions; // before 4.1.0
import kafka.server.BrokerTopicStats; // before 4.1.0
import kafka.server.OffsetAndEpoch; // before 3.9.0
import kafka.server.InitialFetchState; // from 3.9.0
import kafka.server.LeaderEndPoint; // from 3.9.0 before 4.1.0
import kafka.server.OffsetTruncationState;
import kafka.server.PartitionFetchState; // before 4.1.0
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors; // before 3.9.0
import org.apache.kafka.common.record.Records; // before 3.9.0
import org.apache.kafka.common.requests.EpochEndOffset; // before 3.9.0
import org.apache.kafka.common.Uuid; // from 3.9.0
import org.apache.kafka.common.message.FetchResponseData; // from 3.9.0
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition; // from 3.9.0
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset; // from 3.9.0
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest; // before 3.9.0
import org.apache.kafka.server.LeaderEndPoint; // from 4.1.0
import org.apache.kafka.server.PartitionFetchState; // from 4.1.0
import org.apache.kafka.server.ReplicaFetch; // from 4.1.0
import org.apache.kafka.server.ResultWithPartitions; // from 4.1.0
import org.apache.kafka.server.common.OffsetAndEpoch; // from 3.9.0
import org.apache.kafka.server.network.BrokerEndPoint; // from 4.1.0
import org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException; // from 4.1.0
import org.apache.kafka.storage.internals.log.LogAppendInfo; // from 3.9.0
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason; // from 3.9.0
import org.apache.kafka.storage.internals.log.UnifiedLog; // from 4.1.0
import org.apache.kafka.storage.log.metrics.BrokerTopicStats; // from 4.1.0
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map.Map1; // before 4.1.0
import scala.collection.immutable.Set$; // before 4.1.0

/** A fetcher since 2.6 over a log, which does with it what ReplicaFetcherThread does. */
final class Follower extends Following {
    private static final BrokerEndPoint LEADER = new BrokerEndPoint(1, "localhost", 9092);

    private final Log local; // before 3.9.0
    private final UnifiedLog local; // from 3.9.0
    private final FollowerSubject subject;

    Follower(File folder, Clock clock, FollowerSubject subject) throws Exception {
        this.subject = subject;
        local = Logs.open(folder, Logs.config(Map.of()), 0, 0, true, clock);
        fetcher = new Follows(); // before 3.9.0
        fetcher = new Follows(new Leader()); // from 3.9.0 before 4.1.0
        fetcher = new Fetching(new Leader()); // from 4.1.0
    }

    private final class Follows extends AbstractFetcherThread { // before 3.9.0
        Follows() { // before 3.9.0
            super("fetcher", "fetcher", LEADER, failed, 0, false, new BrokerTopicStats()); // before 3.9.0
    private final class Leader implements LeaderEndPoint { // from 3.9.0
        @Override // from 3.9.0
        public boolean isTruncationOnFetchSupported() { // from 3.9.0
            return true; // from 3.9.0
        }

        /** As ReplicaFetcherThread does it, without a session. */ // before 3.9.0
        @Override // from 3.9.0
        public void initiateClose() { } // from 3.9.0

        @Override // from 3.9.0
        public void close() { } // from 3.9.0

        @Override // from 3.9.0
        public BrokerEndPoint brokerEndPoint() { // from 3.9.0
            return LEADER; // from 3.9.0
        } // from 3.9.0

        /** As RemoteLeaderEndPoint does it, without a session. */ // from 3.9.0
        @Override
        public ResultWithPartitions<Option<ReplicaFetch>> buildFetch( // before 4.1.0
            scala.collection.Map<TopicPartition, PartitionFetchState> partitions) { // before 4.1.0
            Option<PartitionFetchState> found = partitions.get(NAME); // before 4.1.0
            if (found.isEmpty() || !found.get().isReadyForFetch()) // before 4.1.0
                return new ResultWithPartitions<>(Option.empty(), Set$.MODULE$.empty()); // before 4.1.0
            PartitionFetchState state = found.get(); // before 4.1.0
            Option<Object> last = state.lastFetchedEpoch(); // from 3.9.0 before 4.1.0
        public ResultWithPartitions<Optional<ReplicaFetch>> buildFetch(Map<TopicPartition, PartitionFetchState> partitions) { // from 4.1.0
            PartitionFetchState state = partitions.get(NAME); // from 4.1.0
            if (state == null || !state.isReadyForFetch()) // from 4.1.0
                return new ResultWithPartitions<>(Optional.empty(), Set.of()); // from 4.1.0
            Map<TopicPartition, FetchRequest.PartitionData> asked = new HashMap<>();
            asked.put(NAME, new FetchRequest.PartitionData(state.fetchOffset(), local.logStartOffset(), 1_000_000, // before 3.9.0
                Optional.of(state.currentLeaderEpoch()))); // before 3.9.0
            asked.put(NAME, new FetchRequest.PartitionData(Uuid.ZERO_UUID, state.fetchOffset(), local.logStartOffset(), // from 3.9.0
                1_000_000, Optional.of(state.currentLeaderEpoch()), // from 3.9.0 before 4.1.0
                last.isEmpty() ? Optional.empty() : Optional.of((Integer) last.get()))); // from 3.9.0 before 4.1.0
            return new ResultWithPartitions<>(new Some<>( // before 4.1.0
                1_000_000, Optional.of(state.currentLeaderEpoch()), state.lastFetchedEpoch())); // from 4.1.0
            return new ResultWithPartitions<>(Optional.of( // from 4.1.0
                new ReplicaFetch(asked, FetchRequest.Builder.forReplica((short) 11, FollowerSubject.LOCAL, 0, 1, asked))), // before 3.9.0
                new ReplicaFetch(asked, FetchRequest.Builder.forReplica((short) 12, FollowerSubject.LOCAL, 1, 0, 1, asked))), // from 3.9.0
                Set$.MODULE$.empty()); // before 4.1.0
                Set.of()); // from 4.1.0
        }

        @Override
        public scala.collection.Map<TopicPartition, FetchResponse.PartitionData<Records>> fetchFromLeader( // before 3.9.0
            FetchRequest.Builder request) { // before 3.9.0
        public scala.collection.Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder request) { // from 3.9.0 before 4.1.0
        public Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder request) { // from 4.1.0
            FetchRequest.PartitionData asked = request.fetchData().get(NAME);
            Object answer = subject.fetch(asked.fetchOffset, asked.currentLeaderEpoch.orElse(-1), -1); // before 3.9.0
            if (answer instanceof String) // before 3.9.0
                return new Map1<>(NAME, data(Errors.valueOf((String) answer), -1, -1, List.of())); // before 3.9.0
            List<Object> read = Subject.list(answer); // before 3.9.0
            return new Map1<>(NAME, data(Errors.NONE, (Long) read.get(0), (Long) read.get(1), Subject.list(read.get(3)))); // before 3.9.0
        } // before 3.9.0

        private FetchResponse.PartitionData<Records> data(Errors error, long highWatermark, long start, // before 3.9.0
            List<Object> batches) { // before 3.9.0
            return new FetchResponse.PartitionData<>(error, highWatermark, highWatermark, start, null, // before 3.9.0
                Batches.records(batches)); // before 3.9.0
        } // before 3.9.0

        private long offset(Object answer) { // before 3.9.0
            if (answer instanceof String) // before 3.9.0
                throw Errors.valueOf((String) answer).exception(); // before 3.9.0
            return (Long) answer; // before 3.9.0
            return new Map1<>(NAME, Answers.fetched(subject.fetch(asked.fetchOffset, asked.currentLeaderEpoch.orElse(-1), // from 3.9.0 before 4.1.0
            return Map.of(NAME, Answers.fetched(subject.fetch(asked.fetchOffset, asked.currentLeaderEpoch.orElse(-1), // from 4.1.0
                asked.lastFetchedEpoch.orElse(-1)))); // from 3.9.0
        }

        @Override
        public long fetchEarliestOffsetFromLeader(TopicPartition name, int leaderEpoch) { // before 3.9.0
            return offset(subject.earliest(leaderEpoch)); // before 3.9.0
        public OffsetAndEpoch fetchEarliestOffset(TopicPartition name, int leaderEpoch) { // from 3.9.0
            return Answers.offset(subject.earliest(leaderEpoch), leaderEpoch); // from 3.9.0
        }

        @Override
        public long fetchLatestOffsetFromLeader(TopicPartition name, int leaderEpoch) { // before 3.9.0
            return offset(subject.latest(leaderEpoch)); // before 3.9.0
        public OffsetAndEpoch fetchLatestOffset(TopicPartition name, int leaderEpoch) { // from 3.9.0
            return Answers.offset(subject.latest(leaderEpoch), leaderEpoch); // from 3.9.0
        } // from 3.9.0

        @Override // from 3.9.0
        public OffsetAndEpoch fetchEarliestLocalOffset(TopicPartition name, int leaderEpoch) { // from 3.9.0
            throw new UnsupportedOperationException(); // from 3.9.0
        }

        public OffsetAndEpoch fetchEarliestPendingUploadOffset(TopicPartition name, int leaderEpoch) { // from 4.1.0
            throw new UnsupportedOperationException(); // from 4.1.0
        } // from 4.1.0

        @Override
        public scala.collection.Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets( // before 4.1.0
            scala.collection.Map<TopicPartition, OffsetsForLeaderEpochRequest.PartitionData> asked) { // before 3.9.0
            OffsetsForLeaderEpochRequest.PartitionData one = asked.apply(NAME); // before 3.9.0
            List<Object> end = Subject.list(subject.epochEnd(one.currentLeaderEpoch.orElse(-1), one.leaderEpoch)); // before 3.9.0
            return new Map1<>(NAME, new EpochEndOffset(Errors.valueOf((String) end.get(0)), (Integer) end.get(1), // before 3.9.0
                (Long) end.get(2))); // before 3.9.0
            scala.collection.Map<TopicPartition, OffsetForLeaderPartition> asked) { // from 3.9.0 before 4.1.0
            OffsetForLeaderPartition one = asked.apply(NAME); // from 3.9.0 before 4.1.0
            return new Map1<>(NAME, Answers.epochEnd(subject.epochEnd(one.currentLeaderEpoch(), one.leaderEpoch()))); // from 3.9.0 before 4.1.0
        public Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets(Map<TopicPartition, OffsetForLeaderPartition> asked) { // from 4.1.0
            OffsetForLeaderPartition one = asked.get(NAME); // from 4.1.0
            return Map.of(NAME, Answers.epochEnd(subject.epochEnd(one.currentLeaderEpoch(), one.leaderEpoch()))); // from 4.1.0
        } // from 3.9.0
    } // from 3.9.0

    private final class Follows extends AbstractFetcherThread { // from 3.9.0 before 4.1.0
        Follows(LeaderEndPoint leader) { // from 3.9.0 before 4.1.0
    private final class Fetching extends AbstractFetcherThread { // from 4.1.0
        Fetching(LeaderEndPoint leader) { // from 4.1.0
            super("fetcher", "fetcher", leader, failed, null, 0, false, new BrokerTopicStats(false)); // from 3.9.0
        }

        @Override
        public Option<LogAppendInfo> processPartitionData(TopicPartition name, long offset, // before 4.1.0
        public Option<LogAppendInfo> processPartitionData(TopicPartition name, long offset, int leaderEpoch, // from 4.1.0
            FetchResponse.PartitionData<Records> data) { // before 3.9.0
            FetchResponseData.PartitionData data) { // from 3.9.0
            if (offset != local.logEndOffset())
                throw new IllegalStateException("offset mismatch");
            var records = Batches.memory(data.records); // before 3.9.0
            var records = Batches.memory(FetchResponse.recordsOrFail(data)); // from 3.9.0
            LogAppendInfo appended;
            try {
                appended = local.appendAsFollower(records); // before 4.1.0
                appended = local.appendAsFollower(records, leaderEpoch); // from 4.1.0
            } catch (UnexpectedAppendOffsetException refused) {
                long end = local.logEndOffset();
                if (end != local.logStartOffset() || refused.firstOffset() >= end || refused.lastOffset() < end) // before 4.1.0
                if (end != local.logStartOffset() || refused.firstOffset >= end || refused.lastOffset < end) // from 4.1.0
                    throw refused;
                local.truncateFullyAndStartAt(refused.firstOffset()); // before 3.9.0
                local.truncateFullyAndStartAt(refused.firstOffset(), Option.empty()); // from 3.9.0 before 4.1.0
                appended = local.appendAsFollower(records); // before 4.1.0
                local.truncateFullyAndStartAt(refused.firstOffset, Optional.empty()); // from 4.1.0
                appended = local.appendAsFollower(records, leaderEpoch); // from 4.1.0
            }
            local.updateHighWatermark(data.highWatermark); // before 3.9.0
            local.maybeIncrementLogStartOffset(data.logStartOffset, LeaderOffsetIncremented$.MODULE$); // before 3.9.0
            local.maybeUpdateHighWatermark(data.highWatermark()); // from 3.9.0 before 4.1.0
            local.maybeIncrementLogStartOffset(data.logStartOffset(), LogStartOffsetIncrementReason.LeaderOffsetIncremented); // from 3.9.0 before 4.1.0
            try { // from 4.1.0
                local.maybeUpdateHighWatermark(data.highWatermark()); // from 4.1.0
                local.maybeIncrementLogStartOffset(data.logStartOffset(), LogStartOffsetIncrementReason.LeaderOffsetIncremented); // from 4.1.0
            } catch (java.io.IOException error) { // from 4.1.0
                throw new IllegalStateException(error); // from 4.1.0
            } // from 4.1.0
            return new Some<>(appended);
        }

        @Override
        public void truncate(TopicPartition name, OffsetTruncationState state) {
            local.truncateTo(state.offset());
        }

        @Override
        public void truncateFullyAndStartAt(TopicPartition name, long offset) {
            local.truncateFullyAndStartAt(offset); // before 3.9.0
            local.truncateFullyAndStartAt(offset, Option.empty()); // from 3.9.0 before 4.1.0
            local.truncateFullyAndStartAt(offset, Optional.empty()); // from 4.1.0
        }

        @Override
        public Option<Object> latestEpoch(TopicPartition name) { // before 4.1.0
        public Optional<Integer> latestEpoch(TopicPartition name) { // from 4.1.0
            return local.latestEpoch();
        }

        @Override
        public long logStartOffset(TopicPartition name) {
            return local.logStartOffset();
        }

        @Override
        public long logEndOffset(TopicPartition name) {
            return local.logEndOffset();
        }

        @Override
        public Option<OffsetAndEpoch> endOffsetForEpoch(TopicPartition name, int epoch) { // before 4.1.0
        public Optional<OffsetAndEpoch> endOffsetForEpoch(TopicPartition name, int epoch) { // from 4.1.0
            return local.endOffsetForEpoch(epoch);
        }

        @Override // before 4.1.0
        public boolean isOffsetForLeaderEpochSupported() { // before 4.1.0
            return true; // before 4.1.0
        public boolean shouldFetchFromLastTieredOffset(TopicPartition name, long leaderEnd, long end) { // from 4.1.0
            return false; // from 4.1.0
        }
    }

    void close() {
        fetcher.fetcherStats().unregister();
        local.closeHandlers(); // before 4.4.0
        local.closeQuietly(); // from 4.4.0
    }

    void own(int count, int epoch) {
        local.appendAsFollower(Batches.batch(local.logEndOffset(), count, epoch)); // before 4.1.0
        local.appendAsFollower(Batches.batch(local.logEndOffset(), count, epoch), epoch); // from 4.1.0
    }

    void highWatermark(long offset) throws Exception {
        local.updateHighWatermark(offset);
    }

    /** As ReplicaManager.makeFollowers. */ // before 3.9.0
    /** As ReplicaManager.initialFetchOffset. */ // from 3.9.0
    void follow(int leaderEpoch) {
        fetcher.addPartitions(new Map1<>(NAME, new OffsetAndEpoch(local.highWatermark(), leaderEpoch))); // before 3.9.0
        long offset = local.latestEpoch().nonEmpty() ? local.logEndOffset() : local.highWatermark(); // from 3.9.0 before 4.1.0
        fetcher.addPartitions(new Map1<>(NAME, // from 3.9.0 before 4.1.0
        long offset = local.latestEpoch().isPresent() ? local.logEndOffset() : local.highWatermark(); // from 4.1.0
        fetcher.addPartitions(new scala.collection.immutable.Map.Map1<>(NAME, // from 4.1.0
            new InitialFetchState(Option.empty(), LEADER, leaderEpoch, offset))); // from 3.9.0
    }

    List<Object> state() {
        List<Object> shown = new ArrayList<>();
        shown.add(fetching());
        shown.addAll(Logs.state(local, local.highWatermark())); // before 3.9.0
        shown.addAll(Logs.state(local)); // from 3.9.0
        return shown;
    }

    /** Whether it leads, its leader epoch, high watermark and log end offset. */ // before 3.9.0
    /** Whether it leads, its epochs, high watermark and log end offset. */ // from 3.9.0
    static List<Object> leading(Release leader) {
        return leader.state().subList(0, 4); // before 3.9.0
        return leader.state().subList(0, 5); // from 3.9.0
    }
}
