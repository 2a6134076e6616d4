package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import kafka.cluster.BrokerEndPoint;
import kafka.log.Log;
import kafka.server.AbstractFetcherThread;
import kafka.server.PartitionFetchState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.collection.immutable.Map.Map1;
import scala.collection.immutable.Set.Set1;

/** A fetcher of 0.10.2 over a log, which does with it what ReplicaFetcherThread does. */
final class Follower {
    private static final TopicPartition NAME = new TopicPartition("t", 0);

    private final FollowerSubject subject;
    private final Log local;
    private final Follows fetcher = new Follows();
    private long highWatermark;
    private int leaderEpoch = -1;
    private boolean dead, halted;

    Follower(File folder, Clock clock, FollowerSubject subject) throws Exception {
        this.subject = subject;
        local = Logs.open(folder, Logs.config(Map.of()), 0, true, clock);
    }

    /** What it asks for: an offset, or nothing. */
    private static final class Asked implements AbstractFetcherThread.FetchRequest {
        final PartitionFetchState state;

        Asked(PartitionFetchState state) {
            this.state = state;
        }

        @Override
        public boolean isEmpty() {
            return state == null;
        }

        @Override
        public long offset(TopicPartition name) {
            return state.offset();
        }
    }

    private static final class Answer implements AbstractFetcherThread.PartitionData {
        final Object answer;

        Answer(Object answer) {
            this.answer = answer;
        }

        @Override
        public short errorCode() {
            return answer instanceof String ? known(answer).code() : Errors.NONE.code();
        }

        @Override
        public Option<Throwable> exception() {
            return answer instanceof String ? new Some<>(known(answer).exception()) : Option.empty();
        }

        @Override
        public MemoryRecords toRecords() {
            return Batches.records(Subject.list(Subject.list(answer).get(3)));
        }

        @Override
        public long highWatermark() {
            return (Long) Subject.list(answer).get(0);
        }
    }

    private static Errors known(Object name) {
        return name.equals("NOT_LEADER_OR_FOLLOWER") ? Errors.NOT_LEADER_FOR_PARTITION : Errors.valueOf((String) name);
    }

    private final class Follows extends AbstractFetcherThread {
        Follows() {
            super("fetcher", "fetcher", new BrokerEndPoint(1, "localhost", 9092), 0, false);
        }

        @Override
        public AbstractFetcherThread.FetchRequest buildFetchRequest(Seq<Tuple2<TopicPartition, PartitionFetchState>> states) {
            for (Tuple2<TopicPartition, PartitionFetchState> each : JavaConverters.seqAsJavaListConverter(states).asJava())
                if (each._2().isActive())
                    return new Asked(each._2());
            return new Asked(null);
        }

        @Override
        public Seq<Tuple2<TopicPartition, AbstractFetcherThread.PartitionData>> fetch(AbstractFetcherThread.FetchRequest asked) {
            AbstractFetcherThread.PartitionData answer = new Answer(subject.fetch(asked.offset(NAME), -1, -1));
            return JavaConverters.asScalaBufferConverter(List.of(new Tuple2<>(NAME, answer))).asScala();
        }

        @Override
        public void processPartitionData(TopicPartition name, long offset, AbstractFetcherThread.PartitionData data) {
            if (offset != local.logEndOffset())
                throw new RuntimeException("offset mismatch");
            local.append(data.toRecords(), false);
            highWatermark = Math.min(local.logEndOffset(), data.highWatermark());
        }

        @Override
        public long handleOffsetOutOfRange(TopicPartition name) {
            long latest = offset(subject.latest(-1)), end = local.logEndOffset();
            if (latest < end) {
                halted = true;
                throw new IllegalStateException("exiting");
            }
            long earliest = offset(subject.earliest(-1));
            if (earliest > end)
                local.truncateFullyAndStartAt(earliest);
            return Math.max(earliest, end);
        }

        private long offset(Object answer) {
            if (answer instanceof String)
                throw known(answer).exception();
            return (Long) answer;
        }

        @Override
        public void handlePartitionsWithErrors(scala.collection.Iterable<TopicPartition> names) {
            delayPartitions(names, 0);
        }
    }

    void close() throws Exception {
        fetcher.fetcherStats().unregister();
        Logs.abandon(local);
    }

    void own(int count, int epoch) {
        local.append(Batches.batch(local.logEndOffset(), count, epoch), false);
    }

    void highWatermark(long offset) {
        highWatermark = offset;
        highWatermark = highWatermark();
    }

    private long highWatermark() {
        return Math.max(local.logStartOffset(), Math.min(highWatermark, local.logEndOffset()));
    }

    /** As ReplicaManager.makeFollowers, whenever the epoch is newer. */
    void follow(int epoch) {
        PartitionFetchState state = state(NAME);
        if (state != null && epoch == leaderEpoch)
            return;
        leave();
        leaderEpoch = epoch;
        highWatermark = highWatermark();
        local.truncateTo(highWatermark);
        fetcher.addPartitions(new Map1<>(NAME, (Object) local.logEndOffset()));
    }

    void leave() {
        fetcher.removePartitions(new Set1<>(NAME));
    }

    /** What it throws ends the thread, or the broker. */
    void work() {
        if (dead || halted)
            return;
        try {
            fetcher.doWork();
        } catch (RuntimeException error) {
            dead = true;
        }
    }

    private PartitionFetchState state(TopicPartition name) {
        return fetcher.kafka$server$AbstractFetcherThread$$partitionStates().stateValue(name);
    }

    List<Object> state() {
        if (halted)
            return List.of("halted");
        highWatermark = highWatermark();
        List<Object> shown = new ArrayList<>();
        shown.add(state(NAME) == null ? null : Arrays.asList("fetching", leaderEpoch));
        shown.addAll(Logs.state(local, highWatermark));
        return shown;
    }

    /** Whether it leads, its leader epoch, high watermark and log end offset. */
    static List<Object> leading(Release leader) {
        return leader.state().subList(0, 4);
    }
}
