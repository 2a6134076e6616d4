import java.util.Map;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/** Stands for the assignment of a large group: it takes 12 s of the coordinator's thread, and assigns nothing. */
public class SlowAssignor implements ConsumerGroupPartitionAssignor {
    @Override
    public String name() {
        return "slow";
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        System.out.println("SlowAssignor begins");
        try {
            Thread.sleep(12_000);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        System.out.println("SlowAssignor ends");
        return new GroupAssignment(Map.of());
    }
}
