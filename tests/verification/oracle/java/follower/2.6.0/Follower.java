package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import kafka.cluster.BrokerEndPoint;
import kafka.common.UnexpectedAppendOffsetException;
import kafka.log.LeaderOffsetIncremented$;
import kafka.log.Log;
import kafka.log.LogAppendInfo;
import kafka.server.AbstractFetcherThread;
import kafka.server.AbstractFetcherThread.ReplicaFetch;
import kafka.server.AbstractFetcherThread.ResultWithPartitions;
import kafka.server.BrokerTopicStats;
import kafka.server.OffsetAndEpoch;
import kafka.server.OffsetTruncationState;
import kafka.server.PartitionFetchState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.Records;
import org.apache.kafka.common.requests.EpochEndOffset;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map.Map1;
import scala.collection.immutable.Set$;

/** A fetcher of 2.6 over a log, which does with it what ReplicaFetcherThread does. */
final class Follower extends Following {
    private static final BrokerEndPoint LEADER = new BrokerEndPoint(1, "localhost", 9092);

    private final Log local;
    private final FollowerSubject subject;

    Follower(File folder, Clock clock, FollowerSubject subject) throws Exception {
        this.subject = subject;
        local = Logs.open(folder, Logs.config(Map.of()), 0, 0, true, clock);
        fetcher = new Follows();
    }

    private final class Follows extends AbstractFetcherThread {
        Follows() {
            super("fetcher", "fetcher", LEADER, failed, 0, false, new BrokerTopicStats());
        }

        /** As ReplicaFetcherThread does it, without a session. */
        @Override
        public ResultWithPartitions<Option<ReplicaFetch>> buildFetch(
            scala.collection.Map<TopicPartition, PartitionFetchState> partitions) {
            Option<PartitionFetchState> found = partitions.get(NAME);
            if (found.isEmpty() || !found.get().isReadyForFetch())
                return new ResultWithPartitions<>(Option.empty(), Set$.MODULE$.empty());
            PartitionFetchState state = found.get();
            Map<TopicPartition, FetchRequest.PartitionData> asked = new HashMap<>();
            asked.put(NAME, new FetchRequest.PartitionData(state.fetchOffset(), local.logStartOffset(), 1_000_000,
                Optional.of(state.currentLeaderEpoch())));
            return new ResultWithPartitions<>(new Some<>(
                new ReplicaFetch(asked, FetchRequest.Builder.forReplica((short) 11, FollowerSubject.LOCAL, 0, 1, asked))),
                Set$.MODULE$.empty());
        }

        @Override
        public scala.collection.Map<TopicPartition, FetchResponse.PartitionData<Records>> fetchFromLeader(
            FetchRequest.Builder request) {
            FetchRequest.PartitionData asked = request.fetchData().get(NAME);
            Object answer = subject.fetch(asked.fetchOffset, asked.currentLeaderEpoch.orElse(-1), -1);
            if (answer instanceof String)
                return new Map1<>(NAME, data(Errors.valueOf((String) answer), -1, -1, List.of()));
            List<Object> read = Subject.list(answer);
            return new Map1<>(NAME, data(Errors.NONE, (Long) read.get(0), (Long) read.get(1), Subject.list(read.get(3))));
        }

        private FetchResponse.PartitionData<Records> data(Errors error, long highWatermark, long start,
            List<Object> batches) {
            return new FetchResponse.PartitionData<>(error, highWatermark, highWatermark, start, null,
                Batches.records(batches));
        }

        private long offset(Object answer) {
            if (answer instanceof String)
                throw Errors.valueOf((String) answer).exception();
            return (Long) answer;
        }

        @Override
        public long fetchEarliestOffsetFromLeader(TopicPartition name, int leaderEpoch) {
            return offset(subject.earliest(leaderEpoch));
        }

        @Override
        public long fetchLatestOffsetFromLeader(TopicPartition name, int leaderEpoch) {
            return offset(subject.latest(leaderEpoch));
        }

        @Override
        public scala.collection.Map<TopicPartition, EpochEndOffset> fetchEpochEndOffsets(
            scala.collection.Map<TopicPartition, OffsetsForLeaderEpochRequest.PartitionData> asked) {
            OffsetsForLeaderEpochRequest.PartitionData one = asked.apply(NAME);
            List<Object> end = Subject.list(subject.epochEnd(one.currentLeaderEpoch.orElse(-1), one.leaderEpoch));
            return new Map1<>(NAME, new EpochEndOffset(Errors.valueOf((String) end.get(0)), (Integer) end.get(1),
                (Long) end.get(2)));
        }

        @Override
        public Option<LogAppendInfo> processPartitionData(TopicPartition name, long offset,
            FetchResponse.PartitionData<Records> data) {
            if (offset != local.logEndOffset())
                throw new IllegalStateException("offset mismatch");
            var records = Batches.memory(data.records);
            LogAppendInfo appended;
            try {
                appended = local.appendAsFollower(records);
            } catch (UnexpectedAppendOffsetException refused) {
                long end = local.logEndOffset();
                if (end != local.logStartOffset() || refused.firstOffset() >= end || refused.lastOffset() < end)
                    throw refused;
                local.truncateFullyAndStartAt(refused.firstOffset());
                appended = local.appendAsFollower(records);
            }
            local.updateHighWatermark(data.highWatermark);
            local.maybeIncrementLogStartOffset(data.logStartOffset, LeaderOffsetIncremented$.MODULE$);
            return new Some<>(appended);
        }

        @Override
        public void truncate(TopicPartition name, OffsetTruncationState state) {
            local.truncateTo(state.offset());
        }

        @Override
        public void truncateFullyAndStartAt(TopicPartition name, long offset) {
            local.truncateFullyAndStartAt(offset);
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

    /** As ReplicaManager.makeFollowers. */
    void follow(int leaderEpoch) {
        fetcher.addPartitions(new Map1<>(NAME, new OffsetAndEpoch(local.highWatermark(), leaderEpoch)));
    }

    List<Object> state() {
        List<Object> shown = new ArrayList<>();
        shown.add(fetching());
        shown.addAll(Logs.state(local, local.highWatermark()));
        return shown;
    }

    /** Whether it leads, its leader epoch, high watermark and log end offset. */
    static List<Object> leading(Release leader) {
        return leader.state().subList(0, 4);
    }
}
