import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Two consumers of partition 0 of topic partition, one of them in rack c, and a producer: the argument is
 * bootstrap.servers. Orders come by lines: produce NAME; read, once.
 */
public class NearReader {
    private static final TopicPartition PARTITION = new TopicPartition("partition", 0);

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "acks", "all");
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("read")) {
                read(servers, "near", Map.of("client.rack", "c"));
                read(servers, "far", Map.of());
                continue;
            }
            ProducerRecord<String, String> record =
                new ProducerRecord<>(PARTITION.topic(), 0, words[1], words[1].substring(1));
            producer.send(record, (done, error) -> say((error == null ? "acknowledged " : "failed ") + words[1]));
        }
    }

    private static void read(String servers, String name, Map<String, Object> rack) {
        Map<String, Object> config = new java.util.HashMap<>(Map.of(
            "bootstrap.servers", servers, "auto.offset.reset", "earliest", "metadata.max.age.ms", "12000"));
        config.putAll(rack);
        Thread thread = new Thread(() -> {
            KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
            consumer.assign(List.of(PARTITION));
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    say(name + " " + record.key());
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static final long BEGIN = System.currentTimeMillis();

    private static synchronized void say(String text) {
        System.out.printf("%s %.1f%n", text, (System.currentTimeMillis() - BEGIN) / 1000.0);
        System.out.flush();
    }
}
