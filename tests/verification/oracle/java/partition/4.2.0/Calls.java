package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import kafka.cluster.Partition;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.partition.AlterPartitionListener;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogReadInfo;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import scala.Option;
import scala.Some;

/** What 4.2 and 4.3 have in their own way. */
final class Calls {
    static final class Listener implements AlterPartitionListener {
        public void markIsrExpand() { }

        public void markIsrShrink() { }

        public void markFailed() { }
    }

    private Calls() { }

    private static PartitionRegistration state(int leader, int leaderEpoch, int partitionEpoch,
        List<Integer> isr, List<Integer> replicas) {
        return new PartitionRegistration.Builder().setLeader(leader).setLeaderEpoch(leaderEpoch)
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED).setPartitionEpoch(partitionEpoch)
            .setIsr(numbers(isr)).setReplicas(numbers(replicas))
            .setDirectories(DirectoryId.unassignedArray(replicas.size())).build();
    }

    private static int[] numbers(List<Integer> brokers) {
        return brokers.stream().mapToInt(Integer::intValue).toArray();
    }

    static void lead(Partition partition, Uuid topic, int leader, int leaderEpoch, int partitionEpoch, List<Integer> isr,
        List<Integer> replicas) {
        partition.makeLeader(state(leader, leaderEpoch, partitionEpoch, isr, replicas), false, null, new Some<>(topic),
            Option.empty());
    }

    static void follow(Partition partition, Uuid topic, int leader, int leaderEpoch, int partitionEpoch,
        List<Integer> replicas) {
        partition.makeFollower(state(leader, leaderEpoch, partitionEpoch, replicas, replicas), false, null,
            new Some<>(topic), Option.empty());
    }

    static void append(Partition partition, int count, int acks) {
        partition.appendRecordsToLeader(Batches.batch(0, count, 0), AppendOrigin.CLIENT, acks, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, (short) 0);
    }

    static List<Object> shown(LogReadInfo read) {
        if (read.divergingEpoch().isPresent())
            return Arrays.asList(read.highWatermark(), read.logStartOffset(),
                Arrays.asList(read.divergingEpoch().get().epoch(), read.divergingEpoch().get().endOffset()));
        List<Object> batches = new ArrayList<>();
        for (var batch : read.fetchedData().records.batches())
            batches.add(Arrays.asList(batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch()));
        return Arrays.asList(read.highWatermark(), read.logStartOffset(), null, batches);
    }

    static Iterable<?> isr(Partition partition) {
        return partition.partitionState().isr();
    }
}
