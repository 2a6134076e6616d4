import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A failover as clients see it: arguments are bootstrap.servers. It waits for a line of input before each next part, and
 * prints a line with the time in ms since 1970 for each thing that it sees.
 */
public class Failover {
    private static final String TOPIC = "orders";
    private static final long LOOK_MS = 5;

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "acks", "all", "linger.ms", "0");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
             KafkaProducer<String, String> producer =
                 new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            await(() -> admin.describeCluster().nodes().get().size() == 3);
            NewTopic topic = new NewTopic(TOPIC, Map.of(0, List.of(1, 2, 3)));
            admin.createTopics(List.of(topic.configs(Map.of("min.insync.replicas", "2")))).all().get();
            Thread.sleep(1_000);
            send(producer, "m1").get();
            System.out.println("ready");
            System.in.read();
            Future<RecordMetadata> sent = send(producer, "m2");
            await(() -> state(admin).leader() != null && state(admin).leader().id() != 1);
            say("elected");
            sent.get();
            say("acknowledged");
            await(() -> state(admin).isr().size() == 3);
            say("joined");
        }
    }

    private static void say(String what) {
        System.out.println(what + " " + System.currentTimeMillis());
        System.out.flush();
    }

    /** Waits for it; a request that fails, as to a broker that was killed, is sent again. */
    private static void await(Callable<Boolean> happens) throws Exception {
        while (true) {
            try {
                if (happens.call()) return;
            } catch (ExecutionException failed) {
                System.err.println(failed.getMessage());
            }
            Thread.sleep(LOOK_MS);
        }
    }

    private static Future<RecordMetadata> send(KafkaProducer<String, String> producer, String value) {
        return producer.send(new ProducerRecord<>(TOPIC, 0, "", value));
    }

    private static TopicPartitionInfo state(Admin admin) throws Exception {
        return admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC).partitions().get(0);
    }
}
