package org.apache.kafka.clients.producer.internals;

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

    public Release(boolean idempotent, int mostInFlight) throws Exception {
        super(idempotent, mostInFlight);
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
    Deque<ProducerBatch> queue() {
        return accumulator.batches().get(PARTITION);
    }

    @Override
    void append(byte[] value, Callback told) throws InterruptedException {
        accumulator.append(PARTITION, time.nowMs, null, value, null, told, 0, false, time.nowMs);
    }

    @Override
    AbstractResponse response(Errors error, long baseOffset, long logStart) {
        return new ProduceResponse(Collections.singletonMap(
            PARTITION, new ProduceResponse.PartitionResponse(error, baseOffset, RecordBatch.NO_TIMESTAMP, logStart)));
    }
}
