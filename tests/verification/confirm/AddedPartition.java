import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
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

/** Scenario kafka-20539 with Kafka's clients: arguments are the broker's port, the group protocol, auto.offset.reset. */
public class AddedPartition {
    private static final int RECORDS = 5;

    public static void main(String[] arguments) throws Exception {
        String servers = "127.0.0.1:" + arguments[0];
        String topic = "orders-" + arguments[1] + "-" + arguments[2];
        TopicPartition added = new TopicPartition(topic, 1);
        Map<String, Object> consumed = new HashMap<>(Map.of(
            "bootstrap.servers", servers, "group.id", topic, "group.protocol", arguments[1],
            "auto.offset.reset", arguments[2], "enable.auto.commit", "false", "metadata.max.age.ms", "20000"));
        Map<String, Object> produced = Map.of("bootstrap.servers", servers, "acks", "all");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers));
             KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(consumed, new StringDeserializer(), new StringDeserializer())) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            consumer.subscribe(List.of(topic));
            List<String> read = new ArrayList<>();
            poll(consumer, read, 60_000, () -> !consumer.assignment().isEmpty());
            poll(consumer, read, 2_000, () -> false);
            write(produced, topic, 0, "m1", 1);
            poll(consumer, read, 60_000, () -> read.contains("m1"));
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get();
            write(produced, topic, 1, "m2", RECORDS);
            long written = System.currentTimeMillis();
            poll(consumer, read, 60_000, () -> consumer.assignment().contains(added));
            long learned = System.currentTimeMillis() - written;
            poll(consumer, read, 3_000, () -> false);
            write(produced, topic, 1, "m3", 1);
            poll(consumer, read, 60_000, () -> read.contains("m3"));
            long found = read.stream().filter("m2"::equals).count();
            System.out.printf("read %d of %d records of m2%s; it had the partition %.1f s after they were acknowledged%n",
                found, RECORDS, read.contains("m3") ? ", and m3" : "", learned / 1000.0);
        }
    }

    /** A new producer, which knows all partitions, writes records to one of them. */
    private static void write(Map<String, Object> produced, String topic, int partition, String name, int records)
            throws Exception {
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(produced, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < records; i++) producer.send(new ProducerRecord<>(topic, partition, "", name)).get();
        }
    }

    private static void poll(KafkaConsumer<String, String> consumer, List<String> read, long most, BooleanSupplier done) {
        long end = System.currentTimeMillis() + most;
        while (System.currentTimeMillis() < end && !done.getAsBoolean()) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) read.add(record.value());
        }
    }
}
