package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.function.Supplier;

import kafka.server.DefaultAlterPartitionManager;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.common.TopicIdPartition;
import org.apache.kafka.server.util.Scheduler;

/** DefaultAlterPartitionManager of 4.0 and later. */
final class Release {
    private final AlterPartitions subject;
    private final DefaultAlterPartitionManager manager;

    Release(AlterPartitions subject, Channel channel, Scheduler scheduler, Time time, Supplier<Long> brokerEpoch) {
        this.subject = subject;
        manager = new DefaultAlterPartitionManager(channel, scheduler, time, AlterPartitions.LEADER, brokerEpoch::get);
    }

    void submit(int partition, List<BrokerState> isr, int leaderEpoch, int partitionEpoch) {
        manager.submit(
            new TopicIdPartition(AlterPartitions.TOPIC, partition),
            new LeaderAndIsr(AlterPartitions.LEADER, leaderEpoch, LeaderRecoveryState.RECOVERED, isr, partitionEpoch)
        ).whenComplete((state, problem) -> subject.ended(partition, problem != null
            ? Arrays.asList(Errors.forException(problem).name())
            : Arrays.asList("NONE", new ArrayList<>(new TreeSet<>(state.isr())),
                state.leaderEpoch(), state.partitionEpoch())));
    }

    List<Integer> pending() {
        List<Integer> found = new ArrayList<>();
        for (Object partition : manager.unsentIsrUpdates().keySet())
            found.add(((TopicIdPartition) partition).partitionId());
        return found;
    }
}
