package org.apache.kafka.controller;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Supplier;

import highwater.Subject;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.MemoryRecords; // before 4.3.0
import org.apache.kafka.common.record.internal.MemoryRecords; // from 4.3.0
import org.apache.kafka.common.record.SimpleRecord; // before 4.3.0
import org.apache.kafka.common.record.internal.SimpleRecord; // from 4.3.0
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.LogContext; // before 4.4.0
import org.apache.kafka.common.utils.internals.LogContext; // from 4.4.0
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/** The managers of a KRaft controller: replication, cluster, configuration, features. No leader is 0. */
public final class KraftController implements Subject {
    private static final long SESSION_MS = 9_000;
    private static final LogContext QUIET = new LogContext();

    /** Stands still until it is moved. */
    private static final class Clock implements Time {
        long nowMs = 1_000_000;

        public long milliseconds() { return nowMs; }

        public long nanoseconds() { return nowMs * 1_000_000; }

        public long hiResClockMs() { return nowMs; }

        public void sleep(long ms) { nowMs += ms; }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }

        public Timer timer(long timeoutMs) { throw new UnsupportedOperationException(); }

        public Timer timer(java.time.Duration timeout) { throw new UnsupportedOperationException(); }
    }

    private Clock clock;
    private List<ApiMessageAndVersion> committed;
    private List<Long> ends;
    private List<long[]> batches;
    private Map<String, Uuid> topics;
    private long incarnations;
    private SnapshotRegistry snapshots;
    private FeatureControlManager features;
    private ConfigurationControlManager configurations;
    private ClusterControlManager cluster;
    private ReplicationControlManager replication;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        clock = new Clock();
        committed = new ArrayList<>();
        ends = new ArrayList<>();
        batches = new ArrayList<>();
        topics = new HashMap<>();
        incarnations = 100;
        take(List.of(feature(MetadataVersion.FEATURE_NAME, MetadataVersion.latestProduction().featureLevel())));
        for (int level : Release.ELR_LEVEL)
            take(List.of(feature(Release.ELR_FEATURE, (short) level)));
        failOver();
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            clock.nowMs++;
            Object answer;
            try {
                answer = answer(Subject.list(each));
            } catch (ApiException refused) {
                answer = Errors.forException(refused).name();
            } catch (IllegalArgumentException thrown) { // As EventHandlerExceptionInfo has it.
                answer = Errors.UNKNOWN_SERVER_ERROR.name();
                failOver();
            }
            ends.add(end());
            seen.add(Arrays.asList(answer, brokers(), partitions()));
        }
        return seen;
    }

    private static ApiMessageAndVersion feature(String name, short level) {
        return new ApiMessageAndVersion(new FeatureLevelRecord().setName(name).setFeatureLevel(level), (short) 0);
    }

    private Object answer(List<Object> operation) throws Exception {
        String first = operation.size() > 1 ? String.valueOf(operation.get(1)) : "";
        switch ((String) operation.get(0)) {
            case "register": return register(Integer.parseInt(first), Subject.number(operation.get(2)), false,
                operation.size() > 3 ? operation.subList(3, operation.size()) : List.of(0L));
            case "again": return register(Integer.parseInt(first), 0, true, List.of());
            case "unregister": take(replication.unregisterBroker(Integer.parseInt(first)).records()); return "NONE";
            case "assign": return assign(first, Subject.number(operation.get(2)),
                operation.size() > 3 ? Subject.number(operation.get(3)) : 0);
            case "heartbeat": return heartbeat(operation);
            case "time": return passTime(Integer.parseInt(first));
            case "create": return create(first, numbers(operation.get(2)));
            case "alter": return alter(first, operation);
            case "elect": return elect(first, (String) operation.get(2));
            case "reassign": return reassign(first, numbers(operation.get(2)));
            case "cancel": return reassign(first, null);
            case "set": return set((String) operation.get(1), String.valueOf(operation.get(2)));
            case "elr": take(List.of(feature(Release.ELR_FEATURE, Short.parseShort(first)))); return "NONE";
            case "balance": take(replication.maybeBalancePartitionLeaders().records()); return "NONE";
            case "check-unclean": take(replication.maybeElectUncleanLeaders().records()); return "NONE";
            case "fail-over": failOver(); return "NONE";
            case "segment": return segment();
            default: throw new IllegalStateException("unknown operation " + operation);
        }
    }

    // Records.

    private long end() {
        return committed.size() - 1;
    }

    private void take(List<ApiMessageAndVersion> records) {
        if (!records.isEmpty())
            batches.add(new long[] {committed.size(), clock.nowMs});
        for (ApiMessageAndVersion record : records) {
            committed.add(record);
            if (replication != null)
                replay(record.message(), end());
        }
    }

    private void replay(ApiMessage record, long offset) {
        if (record instanceof TopicRecord) {
            topics.put(((TopicRecord) record).name(), ((TopicRecord) record).topicId());
            replication.replay((TopicRecord) record);
        } else if (record instanceof PartitionRecord) {
            replication.replay((PartitionRecord) record);
        } else if (record instanceof PartitionChangeRecord) {
            replication.replay((PartitionChangeRecord) record);
        } else if (record instanceof RegisterBrokerRecord) {
            cluster.replay((RegisterBrokerRecord) record, offset);
        } else if (record instanceof BrokerRegistrationChangeRecord) {
            cluster.replay((BrokerRegistrationChangeRecord) record);
        } else if (record instanceof UnregisterBrokerRecord) {
            cluster.replay((UnregisterBrokerRecord) record);
        } else if (record instanceof ConfigRecord) {
            configurations.replay((ConfigRecord) record);
        } else if (record instanceof FeatureLevelRecord) {
            features.replay((FeatureLevelRecord) record);
        } else {
            Release.replay(replication, record);
        }
    }

    /** The metadata log as Kafka stores it: what one event has appended is a batch. In Base64. */
    private String segment() {
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        for (int each = 0; each < batches.size(); each++) {
            long first = batches.get(each)[0];
            long end = each + 1 < batches.size() ? batches.get(each + 1)[0] : committed.size();
            List<SimpleRecord> records = new ArrayList<>();
            for (ApiMessageAndVersion record : committed.subList((int) first, (int) end)) {
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer value = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
                MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(value));
                records.add(new SimpleRecord(batches.get(each)[1], null, value.array()));
            }
            ByteBuffer batch = MemoryRecords.withRecords(first, Compression.NONE, 1,
                records.toArray(new SimpleRecord[0])).buffer();
            written.write(batch.array(), batch.arrayOffset() + batch.position(), batch.remaining());
        }
        return Base64.getEncoder().encodeToString(written.toByteArray());
    }

    private void failOver() throws Exception {
        snapshots = new SnapshotRegistry(QUIET);
        features = Release.features(snapshots);
        configurations = Release.configurations(snapshots, features);
        cluster = Release.cluster(snapshots, clock, SESSION_MS * 1_000_000, features, () -> replication);
        replication = Release.replication(snapshots, features, configurations, cluster);
        for (int offset = 0; offset < committed.size(); offset++)
            replay(committed.get(offset).message(), offset);
        cluster.activate();
    }

    // Brokers.

    private static List<Uuid> directories(int broker, List<?> numbers) {
        List<Uuid> found = new ArrayList<>();
        for (Object number : numbers)
            found.add(new Uuid(9, broker + 1000L * Subject.number(number)));
        return found;
    }

    private Object register(int broker, int clean, boolean again, List<?> directories) {
        BrokerRegistration known = cluster.brokerRegistrations().get(broker);
        if (again && known == null)
            return "unknown";
        Uuid incarnation = again ? known.incarnationId() : new Uuid(7, ++incarnations);
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData().setBrokerId(broker)
            .setClusterId(Release.CLUSTER).setIncarnationId(incarnation)
            .setLogDirs(again ? known.directories() : directories(broker, directories))
            .setPreviousBrokerEpoch(clean == 1 && known != null ? known.epoch() : -1);
        request.listeners().add(new BrokerRegistrationRequestData.Listener().setName("PLAINTEXT").setHost("localhost")
            .setPort(9092));
        Release.addFeatures(request.features());
        take(Release.register(cluster, request, committed.size(), features.finalizedFeatures(Long.MAX_VALUE)));
        return "NONE";
    }

    private Object heartbeat(List<Object> operation) {
        int broker = Subject.number(operation.get(1));
        int ago = Subject.number(operation.get(2));
        BrokerRegistration known = cluster.brokerRegistrations().get(broker);
        if (known == null)
            return "unknown";
        long read = ago == 0 ? end() : ago > ends.size() ? 0 : ends.get(ends.size() - ago);
        BrokerHeartbeatRequestData request = new BrokerHeartbeatRequestData().setBrokerId(broker)
            .setBrokerEpoch(known.epoch()).setCurrentMetadataOffset(read)
            .setWantFence(Subject.number(operation.get(3)) == 1).setWantShutDown(Subject.number(operation.get(4)) == 1)
            .setOfflineLogDirs(directories(broker, operation.subList(5, operation.size())));
        Release.track(cluster, broker, known.epoch());
        ControllerResult<BrokerHeartbeatReply> result =
            replication.processBrokerHeartbeat(request, cluster.registerBrokerRecordOffset(broker).getAsLong());
        take(result.records());
        BrokerHeartbeatReply reply = result.response();
        if (reply.inControlledShutdown())
            cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(broker, end());
        return Arrays.asList(reply.isCaughtUp(), reply.isFenced(), reply.shouldShutDown());
    }

    /** Sessions are looked at every millisecond, so that no two of them end between two looks. */
    private Object passTime(int ms) {
        for (int passed = 0; passed < ms; passed++) {
            clock.nowMs++;
            for (List<ApiMessageAndVersion> records = Release.fence(replication); records != null;
                    records = Release.fence(replication))
                take(records);
        }
        return "NONE";
    }

    // Partitions.

    private ControllerRequestContext context(String api) {
        short version = 3;
        return new ControllerRequestContext(new RequestHeaderData().setRequestApiVersion(version),
            KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
    }

    private Object create(String topic, List<Integer> replicas) {
        CreateTopicsRequestData request = new CreateTopicsRequestData();
        CreateTopicsRequestData.CreatableTopic wanted = new CreateTopicsRequestData.CreatableTopic().setName(topic)
            .setNumPartitions(-1).setReplicationFactor((short) -1);
        wanted.assignments().add(new CreateTopicsRequestData.CreatableReplicaAssignment().setPartitionIndex(0)
            .setBrokerIds(replicas));
        request.topics().add(wanted);
        var result = Release.create(replication, context("create"), request, Set.of(topic));
        take(result.records());
        return Errors.forCode(result.response().topics().find(topic).errorCode()).name();
    }

    private PartitionRegistration partition(String topic) {
        return topics.containsKey(topic) ? replication.getPartition(topics.get(topic), 0) : null;
    }

    /** The topic, the new ISR, who sends (0: the leader), what is added to the leader and the partition epoch. */
    private Object alter(String topic, List<Object> operation) {
        PartitionRegistration state = partition(topic);
        int sender = Subject.number(operation.get(3));
        if (state == null || sender == 0 && state.leader < 0)
            return "unknown";
        sender = sender == 0 ? state.leader : sender;
        BrokerRegistration known = cluster.brokerRegistrations().get(sender);
        if (known == null)
            return "unknown";
        List<AlterPartitionRequestData.BrokerState> isr = new ArrayList<>();
        for (int member : numbers(operation.get(2)))
            isr.add(new AlterPartitionRequestData.BrokerState().setBrokerId(member).setBrokerEpoch(
                cluster.brokerRegistrations().containsKey(member) ? cluster.brokerRegistrations().get(member).epoch() : -1));
        AlterPartitionRequestData.PartitionData wanted = new AlterPartitionRequestData.PartitionData()
            .setPartitionIndex(0).setLeaderEpoch(state.leaderEpoch + Subject.number(operation.get(4)))
            .setPartitionEpoch(state.partitionEpoch + Subject.number(operation.get(5)))
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED.value()).setNewIsrWithEpochs(isr);
        AlterPartitionRequestData request = new AlterPartitionRequestData().setBrokerId(sender).setBrokerEpoch(known.epoch())
            .setTopics(List.of(new AlterPartitionRequestData.TopicData().setTopicId(topics.get(topic))
                .setPartitions(List.of(wanted))));
        ControllerResult<AlterPartitionResponseData> result = replication.alterPartition(context("alter"), request);
        take(result.records());
        return Errors.forCode(result.response().topics().get(0).partitions().get(0).errorCode()).name();
    }

    /** A broker assigns its replica to a log directory: one that it has registered, or the one of the number -place. */
    private Object assign(String topic, int broker, int place) {
        BrokerRegistration known = cluster.brokerRegistrations().get(broker);
        if (known == null || !topics.containsKey(topic) || known.directories().isEmpty())
            return "unknown";
        Uuid directory = place < 0 ? directories(broker, List.of((long) -place)).get(0)
            : known.directories().get(place % known.directories().size());
        AssignReplicasToDirsRequestData request = new AssignReplicasToDirsRequestData().setBrokerId(broker)
            .setBrokerEpoch(known.epoch()).setDirectories(List.of(new AssignReplicasToDirsRequestData.DirectoryData()
                .setId(directory).setTopics(List.of(new AssignReplicasToDirsRequestData.TopicData()
                    .setTopicId(topics.get(topic)).setPartitions(List.of(
                        new AssignReplicasToDirsRequestData.PartitionData().setPartitionIndex(0)))))));
        var result = replication.handleAssignReplicasToDirs(request);
        take(result.records());
        return Errors.forCode(result.response().directories().get(0).topics().get(0).partitions().get(0).errorCode()).name();
    }

    private Object elect(String topic, String kind) {
        ElectLeadersRequestData request = new ElectLeadersRequestData().setElectionType(
            (byte) (kind.equals("PREFERRED") ? 0 : 1));
        request.setTopicPartitions(new ElectLeadersRequestData.TopicPartitionsCollection());
        request.topicPartitions().add(new ElectLeadersRequestData.TopicPartitions().setTopic(topic).setPartitions(List.of(0)));
        var result = replication.electLeaders(request);
        take(result.records());
        return Errors.forCode(result.response().replicaElectionResults().get(0).partitionResult().get(0).errorCode()).name();
    }

    private Object reassign(String topic, List<Integer> replicas) {
        AlterPartitionReassignmentsRequestData request = new AlterPartitionReassignmentsRequestData().setTopics(List.of(
            new AlterPartitionReassignmentsRequestData.ReassignableTopic().setName(topic).setPartitions(List.of(
                new AlterPartitionReassignmentsRequestData.ReassignablePartition().setPartitionIndex(0)
                    .setReplicas(replicas)))));
        var result = replication.alterPartitionReassignments(request);
        take(result.records());
        return Errors.forCode(result.response().responses().get(0).partitions().get(0).errorCode()).name();
    }

    private Object set(String key, String value) {
        var change = Map.of(key, Map.entry(AlterConfigOp.OpType.SET, value));
        if (topics.isEmpty())
            return "unknown";
        Map<ConfigResource, Map<String, Map.Entry<AlterConfigOp.OpType, String>>> changes = new HashMap<>();
        for (String topic : topics.keySet())
            changes.put(new ConfigResource(ConfigResource.Type.TOPIC, topic), change);
        var result = Release.configure(configurations, changes);
        take(result.records());
        return result.response().values().iterator().next().error().name();
    }

    // What is to be seen.

    private List<Object> brokers() {
        List<Object> found = new ArrayList<>();
        for (int broker = 1; broker < 10; broker++) {
            BrokerRegistration known = cluster.brokerRegistrations().get(broker);
            if (known != null)
                found.add(Arrays.asList(broker, known.fenced(), known.inControlledShutdown()));
        }
        return found;
    }

    private List<Object> partitions() {
        List<Object> found = new ArrayList<>();
        for (String topic : List.of("a", "b")) {
            PartitionRegistration state = partition(topic);
            if (state != null)
                found.add(Arrays.asList(topic, Math.max(state.leader, 0), state.leaderEpoch, boxed(state.isr),
                    sorted(state.elr), sorted(state.lastKnownElr), state.partitionEpoch, boxed(state.replicas),
                    boxed(state.addingReplicas), boxed(state.removingReplicas),
                    state.leaderRecoveryState == LeaderRecoveryState.RECOVERING, directories(state)));
        }
        return found;
    }

    /** The number of the log directory of each replica; -1 without one. */
    private static List<Integer> directories(PartitionRegistration state) {
        List<Integer> found = new ArrayList<>();
        for (int place = 0; place < state.replicas.length; place++)
            found.add(state.directories[place].getMostSignificantBits() == 9
                ? (int) (state.directories[place].getLeastSignificantBits() / 1000) : -1);
        return found;
    }

    private static List<Integer> numbers(Object values) {
        List<Integer> found = new ArrayList<>();
        for (Object value : Subject.list(values))
            found.add(Subject.number(value));
        return found;
    }

    private static List<Integer> boxed(int[] ids) {
        List<Integer> found = new ArrayList<>();
        for (int id : ids)
            found.add(Math.max(id, 0));
        return found;
    }

    private static List<Integer> sorted(int[] ids) {
        List<Integer> found = boxed(ids);
        found.sort(null);
        return found;
    }
}
