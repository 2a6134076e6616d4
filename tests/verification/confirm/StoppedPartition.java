import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Scenario stopped-partition with Kafka's producer: arguments are bootstrap.servers, enable.idempotence, and the process
 * of broker 2. Broker 2 leads partition 0 and stands still; broker 1 leads partition 1, and then both.
 */
public class StoppedPartition {
    private static final String TOPIC = "orders";

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "enable.idempotence", arguments[1],
            "acks", "all", "metadata.max.age.ms", "2000", "linger.ms", "0");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
             KafkaProducer<String, String> producer =
                 new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            while (admin.describeCluster().nodes().get().size() < 2) Thread.sleep(200);
            admin.createTopics(List.of(new NewTopic(TOPIC, Map.of(0, List.of(2, 1), 1, List.of(1, 2))))).all().get();
            Thread.sleep(1_000);
            send(producer, 0, "m0").get();
            send(producer, 1, "n0").get();
            signal("-STOP", arguments[2]);
            long stopped = System.currentTimeMillis();
            Future<RecordMetadata> first = send(producer, 0, "m1");
            while (leader(producer) != 1) Thread.sleep(200);
            Future<RecordMetadata> second = send(producer, 0, "m2");
            Thread.sleep(1_000);
            long sent = System.currentTimeMillis();
            long used = cpuMs();
            send(producer, 1, "n1").get();
            long answered = System.currentTimeMillis();
            used = cpuMs() - used;
            first.get();
            second.get();
            System.out.printf("%d ms until n1 was acknowledged, %d ms after broker 2 stopped; m1 and m2 after %d ms; "
                + "%d ms of CPU time of the producer's thread%n",
                answered - sent, answered - stopped, System.currentTimeMillis() - stopped, used);
            signal("-CONT", arguments[2]);
        }
    }

    private static Future<RecordMetadata> send(KafkaProducer<String, String> producer, int partition, String value) {
        return producer.send(new ProducerRecord<>(TOPIC, partition, "", value));
    }

    /** The leader of partition 0 in the producer's metadata. */
    private static int leader(KafkaProducer<String, String> producer) {
        for (PartitionInfo partition : producer.partitionsFor(TOPIC)) {
            if (partition.partition() == 0 && partition.leader() != null) return partition.leader().id();
        }
        return -1;
    }

    /** The CPU time of the producer's thread, in ms. */
    private static long cpuMs() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (long thread : threads.getAllThreadIds()) {
            if (threads.getThreadInfo(thread).getThreadName().startsWith("kafka-producer-network-thread"))
                return threads.getThreadCpuTime(thread) / 1_000_000;
        }
        return 0;
    }

    private static void signal(String name, String process) throws Exception {
        new ProcessBuilder("kill", name, process).start().waitFor();
    }
}
