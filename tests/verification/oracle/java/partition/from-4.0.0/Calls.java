package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import kafka.cluster.AlterPartitionListener; // before 4.2.0
import kafka.cluster.Partition;
import org.apache.kafka.common.DirectoryId; // from 4.2.0
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.requests.LeaderAndIsrRequest; // before 4.2.0
import org.apache.kafka.metadata.LeaderRecoveryState; // from 4.2.0
import org.apache.kafka.metadata.PartitionRegistration; // from 4.2.0
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.partition.AlterPartitionListener; // from 4.2.0
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogReadInfo;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters; // before 4.2.0

/** What has changed since 4.0. */
final class Calls {
    static final class Listener implements AlterPartitionListener {
        public void markIsrExpand() { }

        public void markIsrShrink() { }

        public void markFailed() { }
    }

    private Calls() { }

    private static LeaderAndIsrRequest.PartitionState state(int leader, int leaderEpoch, int partitionEpoch, // before 4.2.0
    private static PartitionRegistration state(int leader, int leaderEpoch, int partitionEpoch, // from 4.2.0
        List<Integer> isr, List<Integer> replicas) {
        return new LeaderAndIsrRequest.PartitionState().setLeader(leader).setLeaderEpoch(leaderEpoch).setIsr(isr) // before 4.2.0
            .setPartitionEpoch(partitionEpoch).setReplicas(replicas); // before 4.2.0
        return new PartitionRegistration.Builder().setLeader(leader).setLeaderEpoch(leaderEpoch) // from 4.2.0
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED).setPartitionEpoch(partitionEpoch) // from 4.2.0
            .setIsr(numbers(isr)).setReplicas(numbers(replicas)) // from 4.2.0
            .setDirectories(DirectoryId.unassignedArray(replicas.size())).build(); // from 4.2.0
    } // from 4.2.0

    private static int[] numbers(List<Integer> brokers) { // from 4.2.0
        return brokers.stream().mapToInt(Integer::intValue).toArray(); // from 4.2.0
    }

    static void lead(Partition partition, Uuid topic, int leader, int leaderEpoch, int partitionEpoch, List<Integer> isr,
        List<Integer> replicas) {
        partition.makeLeader(state(leader, leaderEpoch, partitionEpoch, isr, replicas), null, new Some<>(topic), // before 4.2.0
        partition.makeLeader(state(leader, leaderEpoch, partitionEpoch, isr, replicas), false, null, new Some<>(topic), // from 4.2.0
            Option.empty());
    }

    static void follow(Partition partition, Uuid topic, int leader, int leaderEpoch, int partitionEpoch,
        List<Integer> replicas) {
        partition.makeFollower(state(leader, leaderEpoch, partitionEpoch, replicas, replicas), null, // before 4.2.0
        partition.makeFollower(state(leader, leaderEpoch, partitionEpoch, replicas, replicas), false, null, // from 4.2.0
            new Some<>(topic), Option.empty());
    }

    static void append(Partition partition, int count, int acks) {
        partition.appendRecordsToLeader(Batches.batch(0, count, 0), AppendOrigin.CLIENT, acks, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL); // before 4.2.0
            VerificationGuard.SENTINEL, (short) 0); // from 4.2.0
    }

    static List<Object> shown(LogReadInfo read) {
        if (read.divergingEpoch.isPresent()) // before 4.2.0
            return Arrays.asList(read.highWatermark, read.logStartOffset, // before 4.2.0
                Arrays.asList(read.divergingEpoch.get().epoch(), read.divergingEpoch.get().endOffset())); // before 4.2.0
        if (read.divergingEpoch().isPresent()) // from 4.2.0
            return Arrays.asList(read.highWatermark(), read.logStartOffset(), // from 4.2.0
                Arrays.asList(read.divergingEpoch().get().epoch(), read.divergingEpoch().get().endOffset())); // from 4.2.0
        List<Object> batches = new ArrayList<>();
        for (var batch : read.fetchedData.records.batches()) // before 4.2.0
        for (var batch : read.fetchedData().records.batches()) // from 4.2.0
            batches.add(Arrays.asList(batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch()));
        return Arrays.asList(read.highWatermark, read.logStartOffset, null, batches); // before 4.2.0
        return Arrays.asList(read.highWatermark(), read.logStartOffset(), null, batches); // from 4.2.0
    }

    static Iterable<?> isr(Partition partition) {
        return CollectionConverters.asJava(partition.partitionState().isr()); // before 4.2.0
        return partition.partitionState().isr(); // from 4.2.0
    }
}
