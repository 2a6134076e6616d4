package org.apache.kafka.clients.producer.internals;

import java.lang.reflect.Field;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.AbstractRequest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;

import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.InitProducerIdResponse;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.LogContext;

/** Of 1.1 and 2.0: no batch expires in flight, and here none in the queue. */
public final class Release extends Producing {
    private static final Field NEXT = next();
    private Metadata metadata;

    public Release(boolean idempotent, int mostInFlight, int partitions) throws Exception {
        super(idempotent, mostInFlight, partitions);
    }

    private static Field next() {
        try {
            Field field = TransactionManager.class.getDeclaredField("nextSequence");
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException problem) {
            throw new IllegalStateException(problem);
        }
    }

    @Override
    TransactionManager transactions() {
        return new TransactionManager(new LogContext(), null, 0, 0);
    }

    @Override
    RecordAccumulator accumulator() {
        return new RecordAccumulator(new LogContext(), BATCH_BYTES, MEMORY_BYTES, CompressionType.NONE, 0, 0, metrics, time,
            new ApiVersions(), transactions);
    }

    @Override
    Sender sender() {
        metadata = new Metadata(0, Long.MAX_VALUE, false);
        return new Sender(new LogContext(), network.client(), metadata, accumulator, keepsOrder, 1 << 20, (short) -1,
            Integer.MAX_VALUE, new SenderMetricsRegistry(metrics), time, Integer.MAX_VALUE, 0, transactions, new ApiVersions());
    }

    @Override
    Object leastLoaded() {
        return NODES.get(0);
    }

    @Override
    void metadata(Cluster cluster) {
        metadata.update(cluster, Collections.emptySet(), time.nowMs);
    }

    @Override
    void runOnce() {
        sender.run(time.nowMs);
    }

    @Override
    Deque<ProducerBatch> queue(TopicPartition partition) {
        return accumulator.batches().get(partition);
    }

    @Override
    List<ProducerBatch> inFlight(TopicPartition partition) {
        return Collections.emptyList();
    }

    @Override
    int nextSequence(TopicPartition partition) throws Exception {
        Integer next = ((Map<?, Integer>) NEXT.get(transactions)).get(partition);
        return next == null ? 0 : next;
    }

    @Override
    int lastAcked(TopicPartition partition) {
        return transactions.lastAckedSequence(partition);
    }

    @Override
    void append(TopicPartition partition, byte[] value, Callback told) throws InterruptedException {
        accumulator.append(partition, time.nowMs, null, value, null, told, 0);
    }

    @Override
    AbstractResponse producerId(long id) {
        return new InitProducerIdResponse(0, Errors.NONE, id, (short) 0);
    }

    @Override
    AbstractResponse response(Map<TopicPartition, ProduceResponse.PartitionResponse> results) {
        return new ProduceResponse(results);
    }

    @Override
    List<Integer> partitionsOf(AbstractRequest request) {
        List<Integer> found = new ArrayList<>();
        for (TopicPartition partition : ((ProduceRequest) request).partitionRecordsOrFail().keySet())
            found.add(partition.partition());
        return found;
    }
}
