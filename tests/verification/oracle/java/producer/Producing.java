package org.apache.kafka.clients.producer.internals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import highwater.Clock;
import highwater.Subject;
import org.apache.kafka.clients.Network;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ProduceResponse;

/** A producer's sending side, as far as it is the same in all releases. */
public abstract class Producing {
    static final String TOPIC = "t";
    static final int DELIVERY_TIMEOUT_MS = 100;
    static final int BATCH_BYTES = 256;
    static final long MEMORY_BYTES = 1 << 20;
    private static final String NOT_LEADER = "NOT_LEADER_OR_FOLLOWER";
    private static final short NOT_LEADER_CODE = 6;
    static final List<Node> NODES = Arrays.asList(new Node(1, "one", 1), new Node(2, "two", 2));

    public final Clock time = new Clock();
    public final Network network;
    final Metrics metrics = new Metrics();
    final boolean keepsOrder;
    private final List<TopicPartition> partitions = new ArrayList<>();
    private final Node[] leaders;
    final TransactionManager transactions;
    final RecordAccumulator accumulator;
    final Sender sender;
    private final List<ProducerBatch> batches = new ArrayList<>();
    private final Set<Integer> pending = new TreeSet<>();
    private final Map<Integer, Object> told = new TreeMap<>();
    private final List<Object> sent = new ArrayList<>();
    private int lastId;

    Producing(boolean idempotent, int mostInFlight, int count) throws Exception {
        network = new Network(time, mostInFlight, leastLoaded(), () -> producerId(++lastId), this::partitionsOf);
        leaders = new Node[count];
        for (int place = 0; place < count; place++) {
            partitions.add(new TopicPartition(TOPIC, place));
            leaders[place] = NODES.get(0);
        }
        keepsOrder = mostInFlight == 1;
        transactions = idempotent ? transactions() : null;
        accumulator = accumulator();
        sender = sender();
        lead(1, 0);
        for (int turn = 0; turn < 2; turn++) // The first producer id comes.
            run();
    }

    abstract TransactionManager transactions();

    abstract RecordAccumulator accumulator();

    abstract Sender sender();

    abstract Object leastLoaded();

    abstract void metadata(Cluster cluster);

    abstract void runOnce();

    abstract Deque<ProducerBatch> queue(TopicPartition partition);

    abstract List<ProducerBatch> inFlight(TopicPartition partition);

    abstract int nextSequence(TopicPartition partition) throws Exception;

    abstract int lastAcked(TopicPartition partition);

    abstract void append(TopicPartition partition, byte[] value, Callback told) throws Exception;

    /** The numbers of the partitions of which a produce request has batches. */
    abstract List<Integer> partitionsOf(AbstractRequest request);

    abstract AbstractResponse producerId(long id);

    abstract AbstractResponse response(Map<TopicPartition, ProduceResponse.PartitionResponse> results);

    /** 0: nobody. */
    public void lead(int broker, int place) {
        leaders[place % leaders.length] = broker == 0 ? null : NODES.get(broker - 1);
        Node[] all = NODES.toArray(new Node[0]);
        List<PartitionInfo> known = new ArrayList<>();
        for (int each = 0; each < leaders.length; each++)
            known.add(new PartitionInfo(TOPIC, each, leaders[each], all, all));
        metadata(new Cluster("c", NODES, known, Collections.emptySet(), Collections.emptySet()));
    }

    /** Hands over a batch of so many records. */
    public void add(int count, int place) throws Exception {
        int id = batches.size();
        pending.add(id);
        TopicPartition partition = partitions.get(place % leaders.length);
        append(partition, new byte[1], (metadata, problem) -> tell(id, metadata, problem));
        ProducerBatch batch = queue(partition).peekLast();
        for (int more = 1; more < count; more++)
            batch.tryAppend(time.nowMs, null, new byte[1], new Header[0], null, time.nowMs);
        batch.closeForRecordAppends();
        batches.add(batch);
    }

    private void tell(int id, RecordMetadata metadata, Exception problem) {
        pending.remove(id);
        Errors error = problem == null ? Errors.NONE : Errors.forException(problem);
        String name = error.code() == NOT_LEADER_CODE ? NOT_LEADER : error.name();
        told.put(id, problem == null ? (Object) metadata.offset() : name);
    }

    /** One round; what is thrown ends here, as in Sender.run. */
    public void run() {
        List<ProducerBatch> first = new ArrayList<>();
        for (TopicPartition partition : partitions)
            first.add(queue(partition) == null ? null : queue(partition).peekFirst());
        try {
            runOnce();
        } catch (RuntimeException ignored) { }
        network.sent.forEach((broker, places) -> {
            for (int place : places) {
                List<Object> shown = shown(first.get(place));
                shown.add(broker);
                sent.add(shown);
            }
        });
        network.sent.clear();
    }

    /** Answers the oldest request: an error and an offset for each partition, whether it is in the request or not. */
    public void answer(int broker, List<Object> results) {
        network.answer(broker, places -> {
            Map<TopicPartition, ProduceResponse.PartitionResponse> answered = new LinkedHashMap<>();
            for (int place : places)
                answered.put(partitions.get(place), result((String) results.get(2 * place), Subject.offset(results.get(2 * place + 1))));
            return response(answered);
        });
    }

    private static ProduceResponse.PartitionResponse result(String error, long offset) {
        Errors found = error.isEmpty() ? Errors.NONE : error.equals(NOT_LEADER) ? Errors.forCode(NOT_LEADER_CODE) : Errors.valueOf(error);
        boolean unknown = found == Errors.UNKNOWN_PRODUCER_ID;
        return new ProduceResponse.PartitionResponse(found, found == Errors.NONE ? offset : -1, -1, unknown ? offset : -1);
    }

    private List<Object> shown(ProducerBatch batch) {
        List<Object> shown = new ArrayList<>(Collections.singletonList(batches.indexOf(batch)));
        if (transactions != null)
            Collections.addAll(shown, batch.producerId(), batch.producerEpoch(), batch.baseSequence());
        return shown;
    }

    private List<Object> ids(Iterable<ProducerBatch> some) {
        List<Object> ids = new ArrayList<>();
        for (ProducerBatch batch : some)
            ids.add(batches.indexOf(batch));
        return ids;
    }

    /** What was sent and told, the queue, what is in flight, and of an idempotent producer its sequences. */
    public List<Object> shown() throws Exception {
        List<Object> seen = new ArrayList<>();
        seen.add(new ArrayList<>(sent));
        sent.clear();
        seen.add(Arrays.asList(network.count(1), network.count(2)));
        List<Object> news = new ArrayList<>();
        told.forEach((id, what) -> news.add(Arrays.asList(id, what)));
        seen.add(news);
        told.clear();
        if (transactions != null && transactions.hasFatalError()) {
            seen.add("fenced");
            return seen;
        }
        for (TopicPartition each : partitions) {
            seen.add(queue(each) == null ? Collections.emptyList() : ids(queue(each)));
            seen.add(ids(inFlight(each)));
            if (transactions != null) {
                var current = transactions.producerIdAndEpoch();
                short epoch = current.producerId < 0 ? -1 : current.epoch;
                seen.add(Arrays.asList(current.producerId, epoch, nextSequence(each), lastAcked(each)));
                seen.add(Arrays.asList(transactions.hasUnresolvedSequence(each), transactions.firstInFlightSequence(each)));
            }
        }
        if (transactions != null) {
            List<Object> sequences = new ArrayList<>();
            for (int id : pending)
                if (batches.get(id).hasSequence())
                    sequences.add(shown(batches.get(id)));
            seen.add(sequences);
        }
        return seen;
    }
}
