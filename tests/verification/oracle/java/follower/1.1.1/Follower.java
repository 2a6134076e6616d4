package highwater;

import java.io.File;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import kafka.cluster.BrokerEndPoint;
import kafka.log.Log;
import kafka.server.BlockingSend;
import kafka.server.PartitionFetchState;
import kafka.server.ReplicaFetcherThread;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.common.internals.FatalExitError;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.EpochEndOffset;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetRequest;
import org.apache.kafka.common.requests.ListOffsetResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;
import scala.Some;
import scala.collection.immutable.Map.Map1;
import scala.collection.immutable.Set.Set1;

/** ReplicaFetcherThread of 1.1 and 2.0 on a broker of its own. What it asks for names no leader epoch. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Follower implements BlockingSend {
    private final FollowerSubject subject;
    private final Broker broker;
    private final Log local;
    private final ReplicaFetcherThread fetcher;
    private int leaderEpoch = -1;
    private boolean dead, halted;

    Follower(File folder, Clock clock, FollowerSubject subject) {
        this.subject = subject;
        broker = new Broker(FollowerSubject.LOCAL, folder, clock);
        local = broker.log;
        fetcher = new ReplicaFetcherThread("fetcher", 0, new BrokerEndPoint(1, "localhost", 9092), broker.config,
            broker.manager, Broker.METRICS, clock, Broker.quota(clock), new Some<>(this));
    }

    @Override
    public void close() {
        fetcher.fetcherStats().unregister();
        broker.close();
    }

    @Override
    public ClientResponse sendRequest(AbstractRequest.Builder<? extends AbstractRequest> builder) {
        AbstractRequest request = builder.build();
        AbstractResponse response;
        if (request instanceof FetchRequest)
            response = fetch((FetchRequest) request);
        else if (request instanceof OffsetsForLeaderEpochRequest)
            response = ends((OffsetsForLeaderEpochRequest) request);
        else
            response = offsets((ListOffsetRequest) request);
        Constructor<?> made = ClientResponse.class.getConstructors()[0]; // 2.0 has one thing more in it than 1.1.
        Object[] parts = {null, null, "1", 0L, 0L, false, null, null, response};
        if (made.getParameterCount() < parts.length)
            parts = new Object[] {null, null, "1", 0L, 0L, false, null, response};
        return (ClientResponse) made(made, parts);
    }

    private static Object made(Constructor<?> constructor, Object... parts) {
        try {
            return constructor.newInstance(parts);
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static Errors error(Object name) {
        return name.equals("NOT_LEADER_OR_FOLLOWER") ? Errors.NOT_LEADER_FOR_PARTITION : Errors.valueOf((String) name);
    }

    private FetchResponse fetch(FetchRequest request) {
        LinkedHashMap data = new LinkedHashMap();
        FetchRequest.PartitionData asked = (FetchRequest.PartitionData) request.fetchData().get(Broker.NAME);
        if (asked != null) {
            Object answer = subject.fetch(asked.fetchOffset, -1, -1);
            if (answer instanceof String) {
                data.put(Broker.NAME, new FetchResponse.PartitionData(error(answer), -1, -1, -1, null, Batches.records(List.of())));
            } else {
                List<Object> read = Subject.list(answer);
                data.put(Broker.NAME, new FetchResponse.PartitionData(Errors.NONE, (Long) read.get(0), -1, (Long) read.get(1),
                    null, Batches.records(Subject.list(read.get(3)))));
            }
        }
        return new FetchResponse(Errors.NONE, data, 0, 0);
    }

    private OffsetsForLeaderEpochResponse ends(OffsetsForLeaderEpochRequest request) {
        List<Object> end = Subject.list(subject.epochEnd(-1, request.epochsByTopicPartition().get(Broker.NAME)));
        EpochEndOffset answer = null;
        for (Constructor<?> each : EpochEndOffset.class.getConstructors())
            if (each.getParameterTypes()[0] == Errors.class) // Only 2.0 names an epoch.
                answer = (EpochEndOffset) (each.getParameterCount() == 2 ? made(each, error(end.get(0)), end.get(2))
                    : made(each, error(end.get(0)), end.get(1), end.get(2)));
        return new OffsetsForLeaderEpochResponse(Map.of(Broker.NAME, answer));
    }

    private ListOffsetResponse offsets(ListOffsetRequest request) {
        boolean latest = request.partitionTimestamps().get(Broker.NAME) == ListOffsetRequest.LATEST_TIMESTAMP;
        Object answer = latest ? subject.latest(-1) : subject.earliest(-1);
        return new ListOffsetResponse(Map.of(Broker.NAME, answer instanceof String
            ? new ListOffsetResponse.PartitionData(error(answer), -1L, -1L)
            : new ListOffsetResponse.PartitionData(Errors.NONE, -1L, (Long) answer)));
    }

    void own(int count, int epoch) {
        local.appendAsFollower(Batches.batch(local.logEndOffset(), count, epoch));
    }

    void highWatermark(long offset) {
        broker.highWatermark(offset);
        broker.highWatermark();
    }

    /** As ReplicaManager.makeFollowers, whenever the epoch is newer. */
    void follow(int epoch) {
        if (epoch != leaderEpoch)
            fetcher.removePartitions(new Set1<>(Broker.NAME));
        leaderEpoch = epoch;
        fetcher.addPartitions(new Map1<>(Broker.NAME, (Object) broker.highWatermark()));
    }

    void leave() {
        fetcher.removePartitions(new Set1<>(Broker.NAME));
    }

    /** What it throws ends the thread, or the broker. */
    void work() {
        if (dead || halted)
            return;
        try {
            fetcher.doWork();
        } catch (FatalExitError exit) {
            halted = true;
        } catch (RuntimeException error) {
            dead = true;
        }
    }

    List<Object> state() {
        if (halted)
            return List.of("halted");
        List<Object> shown = new ArrayList<>();
        PartitionFetchState state = fetcher.partitionStates().stateValue(Broker.NAME);
        shown.add(state == null ? null
            : Arrays.asList(state.truncatingLog() ? "truncating" : "fetching", leaderEpoch));
        shown.addAll(Logs.state(local, broker.highWatermark()));
        return shown;
    }

    /** Whether it leads, its leader epoch, high watermark and log end offset. */
    static List<Object> leading(Release leader) {
        return leader.state().subList(0, 4);
    }
}
