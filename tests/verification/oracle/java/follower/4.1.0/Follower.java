package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import kafka.server.AbstractFetcherThread;
import kafka.server.InitialFetchState;
import kafka.server.OffsetTruncationState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.server.LeaderEndPoint;
import org.apache.kafka.server.PartitionFetchState;
import org.apache.kafka.server.ReplicaFetch;
import org.apache.kafka.server.ResultWithPartitions;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;
import scala.Some;

/** A fetcher of 4.1 to 4.3 over a log, which does with it what ReplicaFetcherThread does. */
final class Follower extends Following {
    private static final BrokerEndPoint LEADER = new BrokerEndPoint(1, "localhost", 9092);

    private final UnifiedLog local;
    private final FollowerSubject subject;

    Follower(File folder, Clock clock, FollowerSubject subject) throws Exception {
        this.subject = subject;
        local = Logs.open(folder, Logs.config(Map.of()), 0, 0, true, clock);
        fetcher = new Fetching(new Leader());
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
        public ResultWithPartitions<Optional<ReplicaFetch>> buildFetch(Map<TopicPartition, PartitionFetchState> partitions) {
            PartitionFetchState state = partitions.get(NAME);
            if (state == null || !state.isReadyForFetch())
                return new ResultWithPartitions<>(Optional.empty(), Set.of());
            Map<TopicPartition, FetchRequest.PartitionData> asked = new HashMap<>();
            asked.put(NAME, new FetchRequest.PartitionData(Uuid.ZERO_UUID, state.fetchOffset(), local.logStartOffset(),
                1_000_000, Optional.of(state.currentLeaderEpoch()), state.lastFetchedEpoch()));
            return new ResultWithPartitions<>(Optional.of(
                new ReplicaFetch(asked, FetchRequest.Builder.forReplica((short) 12, FollowerSubject.LOCAL, 1, 0, 1, asked))),
                Set.of());
        }

        @Override
        public Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder request) {
            FetchRequest.PartitionData asked = request.fetchData().get(NAME);
            return Map.of(NAME, Answers.fetched(subject.fetch(asked.fetchOffset, asked.currentLeaderEpoch.orElse(-1),
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

        public OffsetAndEpoch fetchEarliestPendingUploadOffset(TopicPartition name, int leaderEpoch) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets(Map<TopicPartition, OffsetForLeaderPartition> asked) {
            OffsetForLeaderPartition one = asked.get(NAME);
            return Map.of(NAME, Answers.epochEnd(subject.epochEnd(one.currentLeaderEpoch(), one.leaderEpoch())));
        }
    }

    private final class Fetching extends AbstractFetcherThread {
        Fetching(LeaderEndPoint leader) {
            super("fetcher", "fetcher", leader, failed, null, 0, false, new BrokerTopicStats(false));
        }

        @Override
        public Option<LogAppendInfo> processPartitionData(TopicPartition name, long offset, int leaderEpoch,
            FetchResponseData.PartitionData data) {
            if (offset != local.logEndOffset())
                throw new IllegalStateException("offset mismatch");
            var records = Batches.memory(FetchResponse.recordsOrFail(data));
            LogAppendInfo appended;
            try {
                appended = local.appendAsFollower(records, leaderEpoch);
            } catch (UnexpectedAppendOffsetException refused) {
                long end = local.logEndOffset();
                if (end != local.logStartOffset() || refused.firstOffset >= end || refused.lastOffset < end)
                    throw refused;
                local.truncateFullyAndStartAt(refused.firstOffset, Optional.empty());
                appended = local.appendAsFollower(records, leaderEpoch);
            }
            try {
                local.maybeUpdateHighWatermark(data.highWatermark());
                local.maybeIncrementLogStartOffset(data.logStartOffset(), LogStartOffsetIncrementReason.LeaderOffsetIncremented);
            } catch (java.io.IOException error) {
                throw new IllegalStateException(error);
            }
            return new Some<>(appended);
        }

        @Override
        public void truncate(TopicPartition name, OffsetTruncationState state) {
            local.truncateTo(state.offset());
        }

        @Override
        public void truncateFullyAndStartAt(TopicPartition name, long offset) {
            local.truncateFullyAndStartAt(offset, Optional.empty());
        }

        @Override
        public Optional<Integer> latestEpoch(TopicPartition name) {
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
        public Optional<OffsetAndEpoch> endOffsetForEpoch(TopicPartition name, int epoch) {
            return local.endOffsetForEpoch(epoch);
        }

        public boolean shouldFetchFromLastTieredOffset(TopicPartition name, long leaderEnd, long end) {
            return false;
        }
    }

    void close() {
        fetcher.fetcherStats().unregister();
        local.closeHandlers();
    }

    void own(int count, int epoch) {
        local.appendAsFollower(Batches.batch(local.logEndOffset(), count, epoch), epoch);
    }

    void highWatermark(long offset) throws Exception {
        local.updateHighWatermark(offset);
    }

    /** As ReplicaManager.initialFetchOffset. */
    void follow(int leaderEpoch) {
        long offset = local.latestEpoch().isPresent() ? local.logEndOffset() : local.highWatermark();
        fetcher.addPartitions(new scala.collection.immutable.Map.Map1<>(NAME,
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
