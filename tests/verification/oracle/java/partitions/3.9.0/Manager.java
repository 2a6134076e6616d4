package highwater;

import java.util.function.Supplier;

import kafka.server.AlterPartitionManager; // before 4.4.0
import kafka.server.DefaultAlterPartitionManager; // before 4.4.0
import org.apache.kafka.server.common.MetadataVersion; // before 4.0.0
import org.apache.kafka.server.partition.AlterPartitionManager; // from 4.4.0
import org.apache.kafka.server.partition.DefaultAlterPartitionManager; // from 4.4.0
import org.apache.kafka.server.util.Scheduler;

/** DefaultAlterPartitionManager of broker 1. */
final class Manager {
    private Manager() { }

    static AlterPartitionManager of(Channel channel, Scheduler scheduler, Clock clock, Supplier<Long> brokerEpoch) {
        return new DefaultAlterPartitionManager(channel, scheduler, clock, 1, brokerEpoch::get, // before 4.0.0
            MetadataVersion::latestProduction); // before 4.0.0
        return new DefaultAlterPartitionManager(channel, scheduler, clock, 1, brokerEpoch::get); // from 4.0.0 before 4.4.0
        return new DefaultAlterPartitionManager(channel, scheduler, 1, brokerEpoch); // from 4.4.0
    }

    static Release partition(java.io.File folder, Clock clock, java.util.Map<Integer, PartitionSubject.Registration> brokers,
        int number, Object manager) throws Exception {
        return new Release(folder, clock, brokers, number, (AlterPartitionManager) manager);
    }
}
