package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import kafka.cluster.BrokerEndPoint;
import kafka.common.UnexpectedAppendOffsetException;
import kafka.log.UnifiedLog;
import kafka.server.AbstractFetcherThread;
import kafka.server.AbstractFetcherThread.ReplicaFetch;
import kafka.server.AbstractFetcherThread.ResultWithPartitions;
import kafka.server.BrokerTopicStats;
import kafka.server.InitialFetchState;
import kafka.server.LeaderEndPoint;
import kafka.server.OffsetTruncationState;
import kafka.server.PartitionFetchState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map.Map1;
import scala.collection.immutable.Set$;

/** A fetcher of 3.9 over a log, which does with it what ReplicaFetcherThread does. */
final class Follower extends Following {
    private static final BrokerEndPoint LEADER = new BrokerEndPoint(1, "localhost", 9092);

    private final UnifiedLog local;
    private final FollowerSubject subject;

    Follower(File folder, Clock clock, FollowerSubject subject) throws Exception {
        this.subject = subject;
        local = Logs.open(folder, Logs.config(Map.of()), 0, 0, true, clock);
        fetcher = new Follows(new Leader());
    }

    private final class Leader implements LeaderEndPoint {
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

        /** As RemoteLeaderEndPoint does it, without a session. */
        @Override
        public ResultWithPartitions<Option<ReplicaFetch>> buildFetch(
            scala.collection.Map<TopicPartition, PartitionFetchState> partitions) {
            Option<PartitionFetchState> found = partitions.get(NAME);
            if (found.isEmpty() || !found.get().isReadyForFetch())
                return new ResultWithPartitions<>(Option.empty(), Set$.MODULE$.empty());
            PartitionFetchState state = found.get();
            Option<Object> last = state.lastFetchedEpoch();
            Map<TopicPartition, FetchRequest.PartitionData> asked = new HashMap<>();
            asked.put(NAME, new FetchRequest.PartitionData(Uuid.ZERO_UUID, state.fetchOffset(), local.logStartOffset(),
                1_000_000, Optional.of(state.currentLeaderEpoch()),
                last.isEmpty() ? Optional.empty() : Optional.of((Integer) last.get())));
            return new ResultWithPartitions<>(new Some<>(
                new ReplicaFetch(asked, FetchRequest.Builder.forReplica((short) 12, FollowerSubject.LOCAL, 1, 0, 1, asked))),
                Set$.MODULE$.empty());
        }

        @Override
        public scala.collection.Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder request) {
            FetchRequest.PartitionData asked = request.fetchData().get(NAME);
            return new Map1<>(NAME, Answers.fetched(subject.fetch(asked.fetchOffset, asked.currentLeaderEpoch.orElse(-1),
                asked.lastFetchedEpoch.orElse(-1))));
        }

        @Override
        public OffsetAndEpoch fetchEarliestOffset(TopicPartition name, int leaderEpoch) {
            return Answers.offset(subject.earliest(leaderEpoch), leaderEpoch);
        }

        @Override
        public OffsetAndEpoch fetchLatestOffset(TopicPartition name, int leaderEpoch) {
            return Answers.offset(subject.latest(leaderEpoch), leaderEpoch);
        }

        @Override
        public OffsetAndEpoch fetchEarliestLocalOffset(TopicPartition name, int leaderEpoch) {
            throw new UnsupportedOperationException();
        }

        @Override
        public scala.collection.Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets(
            scala.collection.Map<TopicPartition, OffsetForLeaderPartition> asked) {
            OffsetForLeaderPartition one = asked.apply(NAME);
            return new Map1<>(NAME, Answers.epochEnd(subject.epochEnd(one.currentLeaderEpoch(), one.leaderEpoch())));
        }
    }

    private final class Follows extends AbstractFetcherThread {
        Follows(LeaderEndPoint leader) {
            super("fetcher", "fetcher", leader, failed, null, 0, false, new BrokerTopicStats(false));
        }

        @Override
        public Option<LogAppendInfo> processPartitionData(TopicPartition name, long offset,
            FetchResponseData.PartitionData data) {
            if (offset != local.logEndOffset())
                throw new IllegalStateException("offset mismatch");
            var records = Batches.memory(FetchResponse.recordsOrFail(data));
            LogAppendInfo appended;
            try {
                appended = local.appendAsFollower(records);
            } catch (UnexpectedAppendOffsetException refused) {
                long end = local.logEndOffset();
                if (end != local.logStartOffset() || refused.firstOffset() >= end || refused.lastOffset() < end)
                    throw refused;
                local.truncateFullyAndStartAt(refused.firstOffset(), Option.empty());
                appended = local.appendAsFollower(records);
            }
            local.maybeUpdateHighWatermark(data.highWatermark());
            local.maybeIncrementLogStartOffset(data.logStartOffset(), LogStartOffsetIncrementReason.LeaderOffsetIncremented);
            return new Some<>(appended);
        }

        @Override
        public void truncate(TopicPartition name, OffsetTruncationState state) {
            local.truncateTo(state.offset());
        }

        @Override
        public void truncateFullyAndStartAt(TopicPartition name, long offset) {
            local.truncateFullyAndStartAt(offset, Option.empty());
        }

        @Override
        public Option<Object> latestEpoch(TopicPartition name) {
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
        public Option<OffsetAndEpoch> endOffsetForEpoch(TopicPartition name, int epoch) {
            return local.endOffsetForEpoch(epoch);
        }

        @Override
        public boolean isOffsetForLeaderEpochSupported() {
            return true;
        }
    }

    void close() {
        fetcher.fetcherStats().unregister();
        local.closeHandlers();
    }

    void own(int count, int epoch) {
        local.appendAsFollower(Batches.batch(local.logEndOffset(), count, epoch));
    }

    void highWatermark(long offset) throws Exception {
        local.updateHighWatermark(offset);
    }

    /** As ReplicaManager.initialFetchOffset. */
    void follow(int leaderEpoch) {
        long offset = local.latestEpoch().nonEmpty() ? local.logEndOffset() : local.highWatermark();
        fetcher.addPartitions(new Map1<>(NAME,
            new InitialFetchState(Option.empty(), LEADER, leaderEpoch, offset)));
    }

    List<Object> state() {
        List<Object> shown = new ArrayList<>();
        shown.add(fetching());
        shown.addAll(Logs.state(local));
        return shown;
    }

    /** Whether it leads, its epochs, high watermark and log end offset. */
    static List<Object> leading(Release leader) {
        return leader.state().subList(0, 5);
    }
}
