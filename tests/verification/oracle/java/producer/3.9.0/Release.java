package org.apache.kafka.clients.producer.internals;

import java.util.LinkedHashMap;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.TopicPartition;
import java.util.List;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.Map;

import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.LeastLoadedNode;
import org.apache.kafka.clients.MetadataSnapshot;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicIdPartition; // from 4.0.0
import org.apache.kafka.common.Uuid; // from 4.0.0
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.LogContext; // before 4.4.0
import org.apache.kafka.common.utils.internals.LogContext; // from 4.4.0

/** Since 3.9. */
public final class Release extends Recent {
    private Cluster cluster;
    private MetadataSnapshot snapshot;

    public Release(boolean idempotent, int mostInFlight, int partitions) throws Exception {
        super(idempotent, mostInFlight, partitions);
    }

    @Override
    TransactionManager transactions() {
        return new TransactionManager(new LogContext(), null, 0, 0, new ApiVersions()); // before 4.0.0
        return new TransactionManager(new LogContext(), null, 0, 0, new ApiVersions(), false); // from 4.0.0 before 4.4.0
        return new TransactionManager(new LogContext(), null, 0, 0, new ApiVersions(), metadata(), false); // from 4.4.0
    }

    @Override
    RecordAccumulator accumulator() {
        return new RecordAccumulator(new LogContext(), BATCH_BYTES, Compression.NONE, 0, 0, 0, DELIVERY_TIMEOUT_MS, metrics, "g",
            time, new ApiVersions(), transactions, pool()); // before 4.0.0
            time, transactions, pool()); // from 4.0.0
    }

    @Override
    Sender sender() {
        return new Sender(new LogContext(), network.client(), metadata(), accumulator, keepsOrder, 1 << 20, (short) -1,
            Integer.MAX_VALUE, new SenderMetricsRegistry(metrics), time, Integer.MAX_VALUE, 0, transactions, new ApiVersions()); // before 4.0.0
            Integer.MAX_VALUE, new SenderMetricsRegistry(metrics), time, Integer.MAX_VALUE, 0, transactions); // from 4.0.0
    }

    @Override
    void append(TopicPartition partition, byte[] value, Callback told) throws InterruptedException {
        accumulator.append(partition.topic(), partition.partition(), time.nowMs, null, value, null, callbacks(told), 0, false, // before 4.0.0
        accumulator.append(partition.topic(), partition.partition(), time.nowMs, null, value, null, callbacks(told), 0, // from 4.0.0
            time.nowMs, cluster);
    }

    @Override
    AbstractResponse response(Map<TopicPartition, ProduceResponse.PartitionResponse> results) {
        return new ProduceResponse(results); // before 4.0.0
        Map<TopicIdPartition, ProduceResponse.PartitionResponse> named = new LinkedHashMap<>(); // from 4.0.0
        results.forEach((partition, result) -> named.put(new TopicIdPartition(Uuid.ZERO_UUID, partition), result)); // from 4.0.0
        return new ProduceResponse(named); // from 4.0.0
    }

    @Override
    List<Integer> partitionsOf(AbstractRequest request) {
        List<Integer> found = new ArrayList<>();
        ((ProduceRequest) request).data().topicData().forEach(
            topic -> topic.partitionData().forEach(partition -> found.add(partition.index())));
        return found;
    }

    private ProducerMetadata metadata() {
        return new ProducerMetadata(0, 0, Long.MAX_VALUE, Long.MAX_VALUE, new LogContext(), new ClusterResourceListeners(), time) { // before 4.4.0
        return new ProducerMetadata(0, 0, Long.MAX_VALUE, Long.MAX_VALUE, new LogContext(), new ClusterResourceListeners()) { // from 4.4.0
            @Override
            public Cluster fetch() {
                return cluster;
            }

            @Override
            public MetadataSnapshot fetchMetadataSnapshot() {
                return snapshot;
            }
        };
    }

    private BufferPool pool() {
        return new BufferPool(MEMORY_BYTES, BATCH_BYTES, metrics, time, "g");
    }

    @Override
    Object leastLoaded() {
        return new LeastLoadedNode(NODES.get(0), true);
    }

    @Override
    void metadata(Cluster known) {
        cluster = known;
        snapshot = new MetadataSnapshot("c", Map.of(1, NODES.get(0), 2, NODES.get(1)), Collections.emptyList(),
            Collections.emptySet(), Collections.emptySet(), Collections.emptySet(), null, Collections.emptyMap()) {
            @Override
            public Cluster cluster() {
                return known;
            }
        };
    }

    @Override
    Deque<ProducerBatch> queue(TopicPartition partition) {
        return accumulator.getDeque(partition);
    }

    private RecordAccumulator.AppendCallbacks callbacks(Callback told) {
        return new RecordAccumulator.AppendCallbacks() {
            @Override
            public void setPartition(int partition) { }

            @Override
            public void onCompletion(org.apache.kafka.clients.producer.RecordMetadata metadata, Exception problem) {
                told.onCompletion(metadata, problem);
            }
        };
    }
}
