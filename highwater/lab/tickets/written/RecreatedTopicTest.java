// Written by hand, for recreated-topic
package kafka.server;

import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.junit.jupiter.api.Test;

import scala.Option;
import scala.Some;
import scala.collection.mutable.ArrayBuffer;
import scala.collection.mutable.Buffer;
import scala.jdk.javaapi.CollectionConverters;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/**
 * A late fetch response about a deleted topic is appended to the log of another topic of that name.
 *
 * While a fetch is under way, ReplicaManager#applyDelta deletes the partition, creates one of the same name with another
 * topic id, and adds it to the same fetcher thread: as AbstractFetcherThread#removePartitions and #addPartitions do here.
 */
public class RecreatedTopicTest {
    private static final TopicPartition PARTITION = new TopicPartition("audit", 0);
    private static final BrokerEndPoint BROKER = new BrokerEndPoint(1, "localhost", 9092);
    private static final Uuid DELETED = Uuid.randomUuid();
    private static final Uuid CREATED = Uuid.randomUuid();
    private static final int EPOCH = 1;

    private MockFetcherThread fetcher;

    @Test
    public void testFetchResponseAboutDeletedTopicOfSameLeaderEpoch() {
        assertAppendsNothing(EPOCH);
    }

    @Test
    public void testFetchResponseAboutDeletedTopicOfEarlierLeaderEpoch() {
        assertAppendsNothing(EPOCH + 2);
    }

    /** The new topic has an empty log; as its follower led it before, the log has a leader epoch, and fetching begins at once. */
    private void assertAppendsNothing(int epochOfCreated) {
        MockLeaderEndPoint leader = new MockLeaderEndPoint(BROKER, true, ApiKeys.FETCH.latestVersion()) {
            @Override
            public Map<TopicPartition, FetchResponseData.PartitionData> fetch(FetchRequest.Builder request) {
                Map<TopicPartition, FetchResponseData.PartitionData> response = super.fetch(request);
                fetcher.removePartitions(set());
                add(CREATED, epochOfCreated);
                return response;
            }
        };
        fetcher = new MockFetcherThread(leader, new MockTierStateMachine(leader), 0, 1, 0, new FailedPartitions(), false);
        add(DELETED, EPOCH);
        leader.setLeaderState(PARTITION, state(EPOCH, batch("a record of the deleted topic")));
        leader.setReplicaPartitionStateCallback(fetcher::replicaPartitionState);

        fetcher.doWork();

        assertEquals(CREATED, fetcher.fetchState(PARTITION).get().topicId().get());
        PartitionState created = fetcher.replicaPartitionState(PARTITION);
        assertTrue(created.log().isEmpty(), "the log of the new topic has a record of the deleted one: " + created.log());
        assertEquals(0L, fetcher.fetchState(PARTITION).get().fetchOffset());
    }

    private void add(Uuid topicId, int leaderEpoch) {
        fetcher.setReplicaState(PARTITION, state(leaderEpoch));
        InitialFetchState initial = new InitialFetchState(Option.apply(topicId), BROKER, leaderEpoch, 0L);
        fetcher.addPartitions(CollectionConverters.asScala(Map.of(PARTITION, initial)));
    }

    private static scala.collection.Set<TopicPartition> set() {
        return CollectionConverters.asScala(java.util.Set.of(PARTITION));
    }

    private static PartitionState state(int leaderEpoch, RecordBatch... batches) {
        Buffer<RecordBatch> log = new ArrayBuffer<>();
        for (RecordBatch batch : batches)
            log.addOne(batch);
        return new PartitionState(log, leaderEpoch, 0L, batches.length, batches.length, false, 0L, -1L);
    }

    private static RecordBatch batch(String value) {
        return MemoryRecords.withRecords(0L, Compression.NONE, EPOCH, new SimpleRecord(value.getBytes()))
            .batches().iterator().next();
    }
}
