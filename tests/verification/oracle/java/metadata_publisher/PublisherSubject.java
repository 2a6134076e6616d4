package highwater;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;

import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.metadata.BrokerMetadataPublisher;
import kafka.server.metadata.DynamicConfigPublisher;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.NoOpRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.internals.MemoryBatchReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.fault.FaultHandler;

/** MetadataLoader and BrokerMetadataPublisher with a ReplicaManager that notes in which order a delta reaches it. */
public final class PublisherSubject implements Subject {
    private static final String MIN_ISR = "min.insync.replicas";
    private static final ConfigResource CLUSTER = new ConfigResource(ConfigResource.Type.BROKER, "");
    private static final short METADATA_3_5 = 11; // Without log directories.

    /** DynamicConfigPublisher, which notes what has changed. */
    private final class Configs extends DynamicConfigPublisher {
        Configs() {
            super(Replicas.settings(), faults(), null, "broker");
        }

        @Override
        public void onMetadataUpdate(MetadataDelta delta, MetadataImage image) {
            if (delta.configsDelta() != null && delta.configsDelta().changes().containsKey(CLUSTER))
                note("config", MIN_ISR, Integer.parseInt(image.configs().configMapForResource(CLUSTER).get(MIN_ISR)));
        }
    }

    private final Replicas replicas;
    private final Configs configs = new Configs();
    private final Method wait;
    private List<List<Object>> noted = new ArrayList<>();
    private Map<String, Uuid> topics;
    private Map<String, Integer> sizes;
    private MetadataLoader loader;
    private BrokerMetadataPublisher publisher;
    private long end;
    private long ids;

    public PublisherSubject() throws Exception {
        replicas = new Replicas(this);
        wait = MetadataLoader.class.getDeclaredMethod("waitForAllEventsToBeHandled");
        wait.setAccessible(true);
    }

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        topics = new HashMap<>();
        sizes = new HashMap<>();
        publisher = null;
        end = 0;
        noted.clear();
        loader = new MetadataLoader.Builder().setFaultHandler(faults())
            .setHighWaterMarkAccessor(() -> OptionalLong.of(end)).build();
        try {
            commit(List.of(List.of(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel(METADATA_3_5))));
            List<Object> seen = new ArrayList<>();
            for (Object each : operations) {
                List<Object> operation = Subject.list(each);
                boolean begins = operation.get(0).equals("begin") && publisher == null;
                if (begins)
                    begin();
                else if (operation.get(0).equals("commit"))
                    commit(batches(Subject.list(operation.get(1))));
                seen.add(shown(begins));
            }
            return seen;
        } finally {
            loader.close();
        }
    }

    void note(Object... what) {
        noted.add(Arrays.asList(what));
    }

    private FaultHandler faults() {
        Class<?>[] types = {FaultHandler.class};
        return (FaultHandler) Proxy.newProxyInstance(FaultHandler.class.getClassLoader(), types, (proxy, method, given) -> {
            if (((String) given[0]).startsWith("Error applying") || ((String) given[0]).startsWith("Error loading"))
                note("fault", given[0]);
            return new RuntimeException((String) given[0]);
        });
    }

    private void begin() throws Exception {
        Constructor<?> constructor = BrokerMetadataPublisher.class.getConstructors()[0];
        List<Object> given = new ArrayList<>();
        for (Class<?> type : constructor.getParameterTypes()) {
            if (type == KafkaConfig.class)
                given.add(Replicas.settings());
            else if (type == ReplicaManager.class)
                given.add(replicas);
            else if (type == DynamicConfigPublisher.class)
                given.add(configs);
            else
                given.add(type == FaultHandler.class ? faults() : Made.of(type));
        }
        publisher = (BrokerMetadataPublisher) constructor.newInstance(given.toArray());
        loader.installPublishers(List.of(publisher)).get();
        publisher.firstPublishFuture().get(10, TimeUnit.SECONDS);
        wait.invoke(loader);
    }

    private void commit(List<List<ApiMessage>> batches) throws Exception {
        List<Batch<ApiMessageAndVersion>> read = new ArrayList<>();
        long base = end;
        for (List<ApiMessage> records : batches) {
            List<ApiMessageAndVersion> versioned = new ArrayList<>();
            for (ApiMessage record : records)
                versioned.add(new ApiMessageAndVersion(record, (short) 0));
            if (versioned.isEmpty())
                continue;
            read.add(Batch.data(end, 1, 0, 1, versioned));
            end += versioned.size();
        }
        if (read.isEmpty())
            return;
        loader.handleCommit(MemoryBatchReader.of(read, reader -> { }));
        wait.invoke(loader);
    }

    private List<List<ApiMessage>> batches(List<Object> operation) {
        List<List<ApiMessage>> batches = new ArrayList<>();
        for (Object batch : operation) {
            List<ApiMessage> records = new ArrayList<>();
            for (Object each : Subject.list(batch))
                add(records, Subject.list(each));
            batches.add(records);
        }
        return batches;
    }

    /** The records of a change; none if it is about a topic that does not exist. */
    private void add(List<ApiMessage> records, List<Object> change) {
        String topic = (String) change.get(1);
        switch ((String) change.get(0)) {
            case "create":
                if (!topics.containsKey(topic))
                    create(records, topic, Subject.list(change.get(2)));
                break;
            case "change":
                if (sizes.getOrDefault(topic, 0) > Subject.number(change.get(2)))
                    records.add(changed(topic, change));
                break;
            case "remove":
                if (topics.containsKey(topic))
                    records.add(new RemoveTopicRecord().setTopicId(topics.remove(topic)));
                sizes.remove(topic);
                break;
            case "config":
                records.add(new ConfigRecord().setResourceType(CLUSTER.type().id()).setResourceName("").setName(MIN_ISR)
                    .setValue(String.valueOf(change.get(2))));
                break;
            default:
                records.add(new NoOpRecord());
        }
    }

    private void create(List<ApiMessage> records, String topic, List<Object> partitions) {
        Uuid id = new Uuid(1, ++ids);
        topics.put(topic, id);
        sizes.put(topic, partitions.size());
        records.add(new TopicRecord().setName(topic).setTopicId(id));
        for (int number = 0; number < partitions.size(); number++) {
            List<Integer> replicas = numbers(partitions.get(number));
            records.add(new PartitionRecord().setTopicId(id).setPartitionId(number).setReplicas(replicas).setIsr(replicas)
                .setLeader(replicas.get(0)).setLeaderEpoch(0).setPartitionEpoch(0));
        }
    }

    private PartitionChangeRecord changed(String topic, List<Object> change) {
        PartitionChangeRecord record = new PartitionChangeRecord().setTopicId(topics.get(topic))
            .setPartitionId(Subject.number(change.get(2)));
        if (change.get(3) != null)
            record.setLeader(Subject.number(change.get(3)));
        if (change.get(4) != null)
            record.setIsr(numbers(change.get(4)));
        if (change.get(5) != null)
            record.setReplicas(numbers(change.get(5)));
        return record;
    }

    private static List<Integer> numbers(Object list) {
        List<Integer> found = new ArrayList<>();
        for (Object each : Subject.list(list))
            found.add(Subject.number(each));
        return found;
    }

    /**
     * What has reached the broker's parts: groups of the same kind, in order. Logs that the first delta opens or creates
     * have the configuration of its image, so it counts as the first.
     */
    private List<Object> shown(boolean first) {
        List<List<Object>> before = new ArrayList<>(noted);
        if (first)
            before.sort(Comparator.comparing(what -> what.get(0).equals("config") ? 0 : 1));
        List<Object> groups = new ArrayList<>();
        String kind = null;
        List<List<Object>> group = null;
        for (List<Object> what : before) {
            String next = (String) what.get(0);
            if (!next.equals(kind)) {
                group = new ArrayList<>();
                groups.add(group);
                kind = next;
            }
            group.add(what);
        }
        for (Object each : groups)
            Subject.list(each).sort(Comparator.comparing(what -> Subject.list(what).get(1).toString()));
        noted.clear();
        return groups;
    }
}
