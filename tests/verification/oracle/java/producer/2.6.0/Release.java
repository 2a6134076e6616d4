package org.apache.kafka.clients.producer.internals;

import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.TopicPartition;
import java.util.Map;
import java.util.List;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;

import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.LogContext;

/** Of 2.6. */
public final class Release extends Recent {
    private Cluster cluster;

    public Release(boolean idempotent, int mostInFlight, int partitions) throws Exception {
        super(idempotent, mostInFlight, partitions);
    }

    @Override
    TransactionManager transactions() {
        return new TransactionManager(new LogContext(), null, 0, 0, new ApiVersions(), false);
    }

    @Override
    RecordAccumulator accumulator() {
        return new RecordAccumulator(new LogContext(), BATCH_BYTES, CompressionType.NONE, 0, 0, DELIVERY_TIMEOUT_MS, metrics, "g",
            time, new ApiVersions(), transactions, new BufferPool(MEMORY_BYTES, BATCH_BYTES, metrics, time, "g"));
    }

    @Override
    Sender sender() {
        ProducerMetadata metadata = new ProducerMetadata(0, Long.MAX_VALUE, Long.MAX_VALUE, new LogContext(),
            new ClusterResourceListeners(), time) {
            @Override
            public Cluster fetch() {
                return cluster;
            }
        };
        return new Sender(new LogContext(), network.client(), metadata, accumulator, keepsOrder, 1 << 20, (short) -1,
            Integer.MAX_VALUE, new SenderMetricsRegistry(metrics), time, Integer.MAX_VALUE, 0, transactions, new ApiVersions());
    }

    @Override
    Object leastLoaded() {
        return NODES.get(0);
    }

    @Override
    void metadata(Cluster known) {
        cluster = known;
    }

    @Override
    Deque<ProducerBatch> queue(TopicPartition partition) {
        return accumulator.batches().get(partition);
    }

    @Override
    void append(TopicPartition partition, byte[] value, Callback told) throws InterruptedException {
        accumulator.append(partition, time.nowMs, null, value, null, told, 0, false, time.nowMs);
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
