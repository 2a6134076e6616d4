import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Scenario reset-by-duration with Kafka's clients: arguments are the broker's port, the group protocol, the duration. */
public class ResetByDuration {
    private static final int RECORDS = 5;

    public static void main(String[] arguments) throws Exception {
        String servers = "127.0.0.1:" + arguments[0];
        String protocol = arguments[1];
        String topic = "orders-" + protocol + arguments[2].replace(':', '-');
        TopicPartition added = new TopicPartition(topic, 1);
        Map<String, Object> consumed = new java.util.HashMap<>(Map.of(
            "bootstrap.servers", servers, "group.id", topic, "group.protocol", protocol,
            "auto.offset.reset", arguments[2], "enable.auto.commit", "false"));
        if (protocol.equals("classic")) consumed.put("metadata.max.age.ms", "5000");
        Map<String, Object> produced =
            Map.of("bootstrap.servers", servers, "acks", "all", "metadata.max.age.ms", "1000");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers));
             KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(consumed, new StringDeserializer(), new StringDeserializer());
             KafkaProducer<String, String> producer =
                 new KafkaProducer<>(produced, new StringSerializer(), new StringSerializer())) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            consumer.subscribe(List.of(topic));
            producer.send(new ProducerRecord<>(topic, 0, "", "m1")).get();
            List<String> read = new ArrayList<>();
            poll(consumer, read, 60_000, () -> read.contains("m1"));
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get();
            poll(consumer, read, 60_000, () -> consumer.assignment().contains(added));
            poll(consumer, read, 2_000, () -> false);
            for (int i = 0; i < RECORDS; i++) producer.send(new ProducerRecord<>(topic, 1, "", "m2")).get();
            poll(consumer, read, 25_000, () -> false);
            producer.send(new ProducerRecord<>(topic, 1, "", "m3")).get();
            poll(consumer, read, 60_000, () -> read.contains("m3"));
            long found = read.stream().filter("m2"::equals).count();
            System.out.printf("read %d of %d records of m2%s%n", found, RECORDS, read.contains("m3") ? ", and m3" : "");
        }
    }

    private static void poll(KafkaConsumer<String, String> consumer, List<String> read, long most,
                             java.util.function.BooleanSupplier done) {
        long end = System.currentTimeMillis() + most;
        while (System.currentTimeMillis() < end && !done.getAsBoolean()) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) read.add(record.value());
        }
    }
}
