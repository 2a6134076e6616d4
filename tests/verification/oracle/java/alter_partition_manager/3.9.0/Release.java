package highwater;

import java.lang.reflect.Field; // from 4.4.0
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map; // from 4.4.0
import java.util.TreeSet;
import java.util.function.Supplier;

import kafka.api.LeaderAndIsr; // before 4.0.0
import kafka.server.DefaultAlterPartitionManager; // before 4.4.0
import org.apache.kafka.common.TopicIdPartition; // before 4.0.0
import org.apache.kafka.common.TopicPartition; // before 4.0.0
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.LeaderAndIsr; // from 4.0.0
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.common.MetadataVersion; // before 4.0.0
import org.apache.kafka.server.common.TopicIdPartition; // from 4.0.0
import org.apache.kafka.server.partition.DefaultAlterPartitionManager; // from 4.4.0
import org.apache.kafka.server.util.Scheduler;
import scala.collection.immutable.List$; // before 4.0.0
import scala.jdk.javaapi.CollectionConverters; // before 4.0.0

/** DefaultAlterPartitionManager. */
final class Release {
    private final AlterPartitions subject;
    private final DefaultAlterPartitionManager manager;

    Release(AlterPartitions subject, Channel channel, Scheduler scheduler, Time time, Supplier<Long> brokerEpoch) {
        this.subject = subject;
        manager = new DefaultAlterPartitionManager(channel, scheduler, time, AlterPartitions.LEADER, brokerEpoch::get, // before 4.0.0
            MetadataVersion::latestProduction); // before 4.0.0
        manager = new DefaultAlterPartitionManager(channel, scheduler, time, AlterPartitions.LEADER, brokerEpoch::get); // from 4.0.0 before 4.4.0
        manager = new DefaultAlterPartitionManager(channel, scheduler, AlterPartitions.LEADER, brokerEpoch); // from 4.4.0
    }

    void submit(int partition, List<BrokerState> isr, int leaderEpoch, int partitionEpoch) {
        manager.submit(
            new TopicIdPartition(AlterPartitions.TOPIC, partition, "t"), // before 4.0.0
            new LeaderAndIsr(AlterPartitions.LEADER, leaderEpoch, LeaderRecoveryState.RECOVERED, // before 4.0.0
                List$.MODULE$.from(CollectionConverters.asScala(isr)), partitionEpoch), // before 4.0.0
            0 // before 4.0.0
            new TopicIdPartition(AlterPartitions.TOPIC, partition), // from 4.0.0
            new LeaderAndIsr(AlterPartitions.LEADER, leaderEpoch, LeaderRecoveryState.RECOVERED, isr, partitionEpoch) // from 4.0.0
        ).whenComplete((state, problem) -> subject.ended(partition, problem != null
            ? Arrays.asList(Errors.forException(problem).name())
            : Arrays.asList("NONE", new ArrayList<>(new TreeSet<>(CollectionConverters.asJava(state.isr()))), // before 4.0.0
            : Arrays.asList("NONE", new ArrayList<>(new TreeSet<>(state.isr())), // from 4.0.0
                state.leaderEpoch(), state.partitionEpoch())));
    }

    List<Integer> pending() {
        List<Integer> found = new ArrayList<>();
        for (Object partition : manager.unsentIsrUpdates().keySet()) // before 4.4.0
        for (Object partition : unsent().keySet()) // from 4.4.0
            found.add(((TopicPartition) partition).partition()); // before 4.0.0
            found.add(((TopicIdPartition) partition).partitionId()); // from 4.0.0
        return found;
    }

    private Map<?, ?> unsent() { // from 4.4.0
        try { // from 4.4.0
            Field field = DefaultAlterPartitionManager.class.getDeclaredField("unsentIsrUpdates"); // from 4.4.0
            field.setAccessible(true); // from 4.4.0
            return (Map<?, ?>) field.get(manager); // from 4.4.0
        } catch (ReflectiveOperationException problem) { // from 4.4.0
            throw new IllegalStateException(problem); // from 4.4.0
        } // from 4.4.0
    } // from 4.4.0
}
