import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An application of orders-0 and its producer: the argument is bootstrap.servers. Orders come by lines: produce NAME;
 * commit OFFSET; fill PARTITION RECORDS (of __consumer_offsets, a batch each); read, by a consumer that has known its
 * coordinator since a line know.
 */
public class Groups {
    private static final TopicPartition PARTITION = new TopicPartition("orders", 0);
    private static final TopicPartition OTHER = new TopicPartition("orders", 1);
    private static final String GROUP = "application";

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        KafkaConsumer<String, String> reader = consumer(servers);
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "produce" -> produce(servers, words[1]);
                case "commit" -> commit(servers, Long.parseLong(words[1]));
                case "fill" -> fill(servers, Integer.parseInt(words[1]), Integer.parseInt(words[2]));
                case "know" -> say("known " + reader.committed(Set.of(OTHER)).size());
                default -> {
                    reader.assign(List.of(PARTITION));
                    Thread thread = new Thread(() -> read(reader));
                    thread.setDaemon(true);
                    thread.start();
                }
            }
        }
    }

    private static void produce(String servers, String name) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "acks", "all");
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            say("produced " + name + " " + producer.send(new ProducerRecord<>("orders", 0, name, name.substring(1))).get().offset());
        }
    }

    private static void commit(String servers, long offset) {
        try (KafkaConsumer<String, String> consumer = consumer(servers)) {
            consumer.assign(List.of(PARTITION));
            consumer.commitSync(Map.of(PARTITION, new OffsetAndMetadata(offset)));
            say("committed " + offset + " ");
        }
    }

    /** Commits of another group, each in a batch of its own, as many commits make them. */
    private static void fill(String servers, int partition, int records) {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", servers, "client.id", "__admin_client", "acks", "1", "batch.size", "0");
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < records; i++) {
                producer.send(new ProducerRecord<>("__consumer_offsets", partition, key(), value(i)));
            }
        }
        say("filled " + partition + " " + records);
    }

    /** OffsetCommitKey, version 1. */
    private static byte[] key() {
        byte[] group = "others".getBytes(StandardCharsets.UTF_8), topic = "orders".getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(10 + group.length + topic.length).putShort((short) 1)
            .putShort((short) group.length).put(group).putShort((short) topic.length).put(topic).putInt(0).array();
    }

    /** OffsetCommitValue, version 3. */
    private static byte[] value(long offset) {
        return ByteBuffer.allocate(24).putShort((short) 3).putLong(offset).putInt(-1).putShort((short) 0)
            .putLong(System.currentTimeMillis()).array();
    }

    private static void read(KafkaConsumer<String, String> reader) {
        while (true) {
            for (ConsumerRecord<String, String> record : reader.poll(Duration.ofMillis(200))) {
                say("read " + record.key() + " " + record.offset());
            }
            say("position " + reader.position(PARTITION));
        }
    }

    private static KafkaConsumer<String, String> consumer(String servers) {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", servers, "group.id", GROUP, "enable.auto.commit", "false",
            "auto.offset.reset", "latest");
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }
}
