package highwater;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord.BrokerEndpoint;
import org.apache.kafka.common.metadata.RegisterBrokerRecord.BrokerEndpointCollection;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;

/** ReplicaManager of broker 1 with LogManager and BrokerMetadataPublisher, over processes that stop and crash. */
public final class ReplicaManagerSubject implements Subject {
    static final int NODE = 1;
    static final long HIGH_WATERMARKS_MS = 5_000;
    private static final short METADATA_3_9 = 21;
    private static final int[] OTHERS = {2, 3, 4};
    private static final int MOST = 2;
    private static final String LOG = "[abc]-\\d";
    private static final String[] TOPICS = {"a", "b", "c"};

    private final Clock clock = new Clock();
    private final List<File> directories = new ArrayList<>();
    private final List<Uuid> ids = new ArrayList<>();
    private final List<Boolean> failed = new ArrayList<>();
    private final List<Object> noted = new ArrayList<>();
    private final Map<TopicIdPartition, Uuid> assigned = new HashMap<>();
    private Map<String, Uuid> topics;
    private Map<String, Integer> sizes;
    private MetadataImage image;
    private HostedBroker process;
    private long end;
    private long count;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        clock.nowMs = Clock.START_MS;
        int number = 1;
        for (Object each : operations)
            if (Subject.list(each).get(0).equals("directories"))
                number = Subject.number(Subject.list(each).get(1));
        directories.clear();
        ids.clear();
        failed.clear();
        for (int place = 0; place < number; place++) {
            directories.add(Folders.next());
            ids.add(new Uuid(8, 200 + place));
            failed.add(false);
            Files.writeString(new File(directories.get(place), "meta.properties").toPath(),
                "version=1\ncluster.id=" + new Uuid(9, 9) + "\nnode.id=" + NODE + "\ndirectory.id=" + ids.get(place) + "\n");
        }
        topics = new HashMap<>();
        sizes = new HashMap<>();
        noted.clear();
        assigned.clear();
        process = null;
        count = 0;
        end = 0;
        image = MetadataImage.EMPTY;
        image = replayed(first()).apply(provenance());
        try {
            List<Object> seen = new ArrayList<>();
            for (Object each : operations)
                seen.add(shown(answer(Subject.list(each))));
            return seen;
        } finally {
            crash();
            directories.forEach(Folders::remove);
            forgetMetrics();
        }
    }

    /** Logs whose files alone are closed stay in the registry of metrics, which all cases share. */
    private static void forgetMetrics() {
        MetricsRegistry registry = KafkaYammerMetrics.defaultRegistry();
        for (MetricName name : List.copyOf(registry.allMetrics().keySet()))
            registry.removeMetric(name);
    }

    void note(Object what) {
        noted.add(what);
    }

    /** The controller is to know the directory of a replica. */
    void assigned(Uuid topic, int partition, Uuid directory) {
        for (Map.Entry<String, Uuid> each : topics.entrySet())
            if (each.getValue().equals(topic))
                assigned.put(new TopicIdPartition(topic, partition, each.getKey()), directory);
    }

    /** What AssignmentsManager would send: directories that the metadata do not have. */
    private List<Object> unknown() {
        List<Object> found = new ArrayList<>();
        assigned.forEach((name, directory) -> {
            PartitionRegistration state = image.topics().getPartition(name.topicId(), name.partition());
            if (state != null && Arrays.stream(state.replicas).anyMatch(broker -> broker == NODE)
                && !state.directory(NODE).equals(directory))
                found.add(Arrays.asList(name.topicPartition().toString(), ids.indexOf(directory)));
        });
        found.sort(Comparator.comparing(Object::toString));
        return found;
    }

    private void crash() throws Exception {
        if (process != null)
            process.abandon();
        process = null;
        assigned.clear();
    }

    private Object answer(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "start":
                if (process == null && failed.contains(false))
                    start();
                return null;
            case "stop":
                if (process != null)
                    process.stop();
                process = null;
                assigned.clear();
                return null;
            case "crash":
                crash();
                return null;
            case "ending":
                if (process != null)
                    process.beginControlledShutdown();
                return null;
            case "commit":
                commit(Subject.list(operation.get(1)));
                return null;
            case "wait":
                elapse(Subject.offset(operation.get(1)));
                return null;
            case "fail":
                fail(Subject.number(operation.get(1)));
                return null;
            case "mend":
                mend(Subject.number(operation.get(1)));
                return null;
            case "directories":
                return null;
            default:
                boolean exists = process != null
                    && Subject.number(operation.get(2)) < sizes.getOrDefault((String) operation.get(1), 0);
                return exists ? asked(operation) : null; // KafkaApis refuses it.
        }
    }

    private Object asked(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "append":
                return process.append(name(operation, 1), Subject.number(operation.get(3)), (Boolean) operation.get(4));
            case "fetch":
                return process.fetch(name(operation, 1), Subject.number(operation.get(3)), Subject.number(operation.get(4)),
                    Subject.offset(operation.get(5)), Subject.offset(operation.get(6)));
            case "copy":
                return process.copy(name(operation, 1), Subject.number(operation.get(3)), (Boolean) operation.get(4));
            case "shrink":
                process.shrink(name(operation, 1));
                return null;
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
    }

    private static TopicPartition name(List<Object> operation, int place) {
        return new TopicPartition((String) operation.get(place), Subject.number(operation.get(place + 1)));
    }

    private void start() throws Exception {
        List<File> offline = new ArrayList<>();
        for (int place = 0; place < directories.size(); place++)
            if (failed.get(place))
                offline.add(directories.get(place));
        resign();
        process = new HostedBroker(directories, offline, clock, this);
        MetadataDelta all = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        image.write(new org.apache.kafka.image.writer.ImageWriter() {
            @Override
            public void write(org.apache.kafka.server.common.ApiMessageAndVersion record) {
                all.replay(record.message());
            }

            @Override
            public void close(boolean complete) { }
        }, new org.apache.kafka.image.writer.ImageWriterOptions.Builder(image).build()); // from 4.0.0
        }, new org.apache.kafka.image.writer.ImageWriterOptions.Builder() // before 4.0.0
            .setMetadataVersion(image.features().metadataVersion()).build()); // before 4.0.0
        process.publish(all, all.apply(provenance()));
    }

    /** The controller elects no leader whose log directory has failed. */
    private void resign() throws Exception {
        List<Object> changes = new ArrayList<>();
        for (String topic : TOPICS)
            for (int number = 0; number < sizes.getOrDefault(topic, 0); number++) {
                PartitionRegistration state = image.topics().getPartition(topics.get(topic), number);
                int place = state.leader == NODE ? ids.indexOf(state.directory(NODE)) : -1;
                if (place >= 0 && failed.get(place))
                    changes.add(Arrays.asList("change", topic, (long) number, -1L, null, null, null));
            }
        commit(changes);
    }

    private void elapse(long ms) {
        long untilMs = clock.nowMs + ms;
        if (process != null)
            process.elapse(untilMs);
        clock.nowMs = untilMs;
    }

    private void fail(int place) {
        if (place >= failed.size() || failed.get(place) || failed.indexOf(false) == failed.lastIndexOf(false))
            return;
        failed.set(place, true);
        if (process != null)
            process.fail(directories.get(place));
    }

    /** An operator deletes the logs that are in the other directory, too, with which LogManager does not start. */
    private void mend(int place) {
        if (process != null || place >= failed.size() || !failed.get(place))
            return;
        failed.set(place, false);
        for (String name : directories.get(1 - place).list())
            if (name.matches(LOG))
                Folders.delete(new File(directories.get(place), name));
    }

    // Metadata.

    private MetadataProvenance provenance() {
        return new MetadataProvenance(end, 1, end); // before 4.0.0
        return new MetadataProvenance(end, 1, end, true); // from 4.0.0
    }

    private List<ApiMessage> first() {
        List<ApiMessage> records = new ArrayList<>();
        records.add(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel(METADATA_3_9));
        for (int broker = 1; broker <= 1 + OTHERS.length; broker++) {
            BrokerEndpointCollection ends = new BrokerEndpointCollection();
            ends.add(new BrokerEndpoint().setName("PLAINTEXT").setHost("localhost").setPort(9000 + broker).setSecurityProtocol((short) 0));
            records.add(new RegisterBrokerRecord().setBrokerId(broker).setIncarnationId(new Uuid(5, broker))
                .setBrokerEpoch(broker).setEndPoints(ends).setFenced(false)
                .setLogDirs(broker == NODE ? ids : List.of(new Uuid(7, broker))));
        }
        return records;
    }

    private MetadataDelta replayed(List<ApiMessage> records) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        for (ApiMessage record : records)
            delta.replay(record);
        end += records.size();
        return delta;
    }

    /** The changes are replayed one after the other, and published together. */
    private void commit(List<Object> changes) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        Map<String, PartitionRegistration> states = new LinkedHashMap<>();
        image.topics().topicsByName().forEach((topic, all) -> // For what follows a change in the same delta.
            all.partitions().forEach((number, state) -> states.put(topic + "-" + number, state)));
        boolean isEmpty = true;
        for (Object each : changes) {
            List<Object> change = Subject.list(each);
            for (ApiMessage record : records(change, states)) {
                delta.replay(record);
                end++;
                isEmpty = false;
            }
        }
        if (isEmpty)
            return;
        boolean isDeleted = !delta.topicsDelta().localChanges(NODE).deletes().isEmpty();
        image = delta.apply(provenance());
        if (process != null)
            process.publish(delta, image);
        if (process != null && isDeleted)
            process.writeHighWatermarks();
    }

    private List<ApiMessage> records(List<Object> change, Map<String, PartitionRegistration> states) {
        String topic = (String) change.get(1);
        switch ((String) change.get(0)) {
            case "create":
                return topics.containsKey(topic) ? List.of() : created(topic, Subject.list(change.get(2)), states);
            case "change":
                int number = Subject.number(change.get(2));
                return number < sizes.getOrDefault(topic, 0) ? List.of(changed(topic, number, change, states)) : List.of();
            case "remove":
                sizes.remove(topic);
                Uuid id = topics.remove(topic);
                return id == null ? List.of() : List.of(new RemoveTopicRecord().setTopicId(id));
            default:
                throw new IllegalStateException("unknown change " + change);
        }
    }

    private List<ApiMessage> created(String topic, List<Object> partitions, Map<String, PartitionRegistration> states) {
        List<ApiMessage> records = new ArrayList<>();
        Uuid id = new Uuid(1, ++count);
        topics.put(topic, id);
        sizes.put(topic, partitions.size());
        records.add(new TopicRecord().setName(topic).setTopicId(id));
        for (int number = 0; number < partitions.size(); number++) {
            List<Integer> replicas = numbers(partitions.get(number));
            PartitionRecord record = new PartitionRecord().setTopicId(id).setPartitionId(number).setReplicas(replicas)
                .setIsr(replicas).setLeader(replicas.get(0)).setLeaderEpoch(0).setPartitionEpoch(0)
                .setDirectories(replicas.stream().map(this::first).toList());
            records.add(record);
            states.put(topic + "-" + number, new PartitionRegistration(record));
        }
        return records;
    }

    /** The directory of a new replica. */
    private Uuid first(int broker) {
        if (broker != NODE)
            return new Uuid(7, broker);
        return read(ids.size() > 1 ? DirectoryId.UNASSIGNED : ids.get(0));
    }

    /** As a record that was read has it, which TopicDelta compares by reference. */
    private static Uuid read(Uuid id) {
        return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    private PartitionChangeRecord changed(String topic, int number, List<Object> change, Map<String, PartitionRegistration> states) {
        PartitionRegistration before = states.get(topic + "-" + number);
        PartitionChangeRecord record = new PartitionChangeRecord().setTopicId(topics.get(topic)).setPartitionId(number);
        List<Integer> replicas = Arrays.stream(before.replicas).boxed().toList();
        if (change.get(5) != null) {
            replicas = numbers(change.get(5));
            record.setReplicas(replicas);
        }
        List<Uuid> places = new ArrayList<>();
        boolean isFailed = false;
        for (int broker : replicas) {
            Uuid place = first(broker);
            for (int at = 0; at < before.replicas.length; at++)
                if (before.replicas[at] == broker)
                    place = read(before.directories[at]);
            if (broker == NODE && change.get(6) != null && Subject.number(change.get(6)) < ids.size())
                place = read(ids.get(Subject.number(change.get(6))));
            places.add(place);
            isFailed |= broker == NODE && ids.contains(place) && failed.get(ids.indexOf(place));
        }
        int leader = change.get(3) == null ? before.leader : Subject.number(change.get(3));
        if (leader >= 0 && !replicas.contains(leader) || leader == NODE && isFailed) {
            leader = -1;
            record.setLeader(-1);
        } else if (change.get(3) != null) {
            record.setLeader(leader);
        }
        List<Integer> isr = new ArrayList<>(change.get(4) == null ? Arrays.stream(before.isr).boxed().toList() : numbers(change.get(4)));
        isr.retainAll(replicas);
        if (isr.isEmpty())
            isr.add(replicas.get(0));
        if (leader >= 0 && !isr.contains(leader))
            isr.add(0, leader);
        record.setIsr(isr);
        if (!places.equals(Arrays.asList(before.directories))) // As PartitionChangeBuilder has it.
            record.setDirectories(places);
        states.put(topic + "-" + number, before.merge(record));
        return record;
    }

    static List<Integer> numbers(Object list) {
        List<Integer> found = new ArrayList<>();
        for (Object each : Subject.list(list))
            found.add(Subject.number(each));
        return found;
    }

    // What is to be seen.

    private List<Object> shown(Object answer) throws IOException {
        List<Object> shown = new ArrayList<>();
        shown.add(answer);
        shown.add(new ArrayList<>(noted));
        noted.clear();
        shown.add(unknown());
        for (int place = 0; place < directories.size(); place++) {
            TreeSet<Object> names = new TreeSet<>();
            if (process != null && !failed.get(place))
                for (String name : directories.get(place).list())
                    if (name.matches(LOG))
                        names.add(name);
            shown.add(new ArrayList<>(names));
        }
        for (String topic : TOPICS)
            for (int number = 0; number < MOST; number++)
                shown.add(process == null ? null : process.shown(new TopicPartition(topic, number), directories,
                    topics.get(topic)));
        return shown;
    }
}
