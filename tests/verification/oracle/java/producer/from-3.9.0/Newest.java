package org.apache.kafka.clients.producer.internals;

import java.util.Collections;
import java.util.Deque;
import java.util.Map;

import org.apache.kafka.clients.LeastLoadedNode;
import org.apache.kafka.clients.MetadataSnapshot;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.utils.LogContext;

/** What is the same from 3.9 on. */
abstract class Newest extends Recent {
    private Cluster cluster;
    private MetadataSnapshot snapshot;

    Newest(boolean idempotent, int mostInFlight) throws Exception {
        super(idempotent, mostInFlight);
    }

    ProducerMetadata metadata() {
        return new ProducerMetadata(0, 0, Long.MAX_VALUE, Long.MAX_VALUE, new LogContext(), new ClusterResourceListeners(), time) {
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

    BufferPool pool() {
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
    Deque<ProducerBatch> queue() {
        return accumulator.getDeque(PARTITION);
    }

    final RecordAccumulator.AppendCallbacks callbacks(Callback told) {
        return new RecordAccumulator.AppendCallbacks() {
            @Override
            public void setPartition(int partition) { }

            @Override
            public void onCompletion(org.apache.kafka.clients.producer.RecordMetadata metadata, Exception problem) {
                told.onCompletion(metadata, problem);
            }
        };
    }

    Cluster cluster() {
        return cluster;
    }
}
