import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Applications of orders-0, each a consumer of its own: the argument is bootstrap.servers. Orders come by lines:
 * commit GROUP OFFSET; offset GROUP; join GROUP, with the group protocol consumer and the assignor slow.
 */
public class Commits {
    private static final TopicPartition PARTITION = new TopicPartition("orders", 0);

    public static void main(String[] arguments) throws Exception {
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.split(" ");
            Thread thread = new Thread(() -> act(arguments[0], words));
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void act(String servers, String[] words) {
        long begin = System.currentTimeMillis();
        String about = words[1] + (words.length > 2 ? " " + words[2] : "");
        try (KafkaConsumer<String, String> consumer = consumer(servers, words[1], words[0].equals("join"))) {
            if (words[0].equals("commit")) {
                consumer.assign(List.of(PARTITION));
                consumer.commitSync(Map.of(PARTITION, new OffsetAndMetadata(Long.parseLong(words[2]))));
                say("committed " + about, begin);
            } else if (words[0].equals("offset")) {
                OffsetAndMetadata found = consumer.committed(Set.of(PARTITION)).get(PARTITION);
                say("offset " + about + " " + (found == null ? "none" : found.offset()), begin);
            } else {
                consumer.subscribe(List.of(PARTITION.topic()));
                while (true) consumer.poll(Duration.ofMillis(200));
            }
        } catch (Exception error) {
            say("refused " + about + " " + error.getClass().getSimpleName(), begin);
        }
    }

    private static KafkaConsumer<String, String> consumer(String servers, String group, boolean joins) {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", servers, "group.id", group, "enable.auto.commit", "false"));
        if (joins) config.putAll(Map.of("group.protocol", "consumer", "group.remote.assignor", "slow"));
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static synchronized void say(String text, long begin) {
        System.out.printf("%s %.1f%n", text, (System.currentTimeMillis() - begin) / 1000.0);
        System.out.flush();
    }
}
