package org.apache.kafka.controller;

import java.lang.reflect.*;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicResult;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.TopicIdPartition;

/**
 * Is a broker elected that registers, after a clean shutdown, without the log directory in which it has an eligible replica?
 *
 * Needs what OfflineDirectoryLeader.java needs, and is run in the same way.
 */
public class RemovedDirectory {
    static final String CONTEXT = ReplicationControlManagerTest.class.getName() + "$ReplicationControlTestContext";
    static Object invoke(Object target, String name, Class<?>[] types, Object... values) throws Exception {
        Method method = target.getClass().getDeclaredMethod(name, types);
        method.setAccessible(true);
        return method.invoke(target, values);
    }
    static Object field(Object target, String name) throws Exception {
        Field field = target.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(target);
    }
    static void replay(Object ctx, ControllerResult<?> result) throws Exception {
        invoke(ctx, "replay", new Class<?>[] {List.class}, result.records());
    }
    static void story(boolean clean, boolean assignsFirst) throws Exception {
        Constructor<?> constructor = Class.forName(CONTEXT + "$Builder").getDeclaredConstructor();
        constructor.setAccessible(true);
        Object builder = constructor.newInstance();
        invoke(builder, "setIsElrEnabled", new Class<?>[] {boolean.class}, true);
        Object ctx = invoke(builder, "build", new Class<?>[0]);
        ReplicationControlManager replication = (ReplicationControlManager) field(ctx, "replicationControl");
        ClusterControlManager cluster = (ClusterControlManager) field(ctx, "clusterControl");
        List<List<Uuid>> dirs = new ArrayList<>();
        for (int i = 0; i < 3; i++) dirs.add(List.of(Uuid.randomUuid(), Uuid.randomUuid()));
        invoke(ctx, "registerBrokersWithDirs", new Class<?>[] {Object[].class}, (Object) new Object[] {1, dirs.get(0), 2, dirs.get(1), 3, dirs.get(2)});
        invoke(ctx, "unfenceBrokers", new Class<?>[] {Integer[].class}, (Object) new Integer[] {1, 2, 3});
        Uuid topic = ((CreatableTopicResult) invoke(ctx, "createTestTopic",
            new Class<?>[] {String.class, int[][].class, Map.class, short.class}, "foo", new int[][] {new int[] {1, 2, 3}},
            Map.of("min.insync.replicas", "2"), (short) 0)).topicId();
        for (int b = 1; b <= 3; b++)
            invoke(ctx, "assignReplicasToDirs", new Class<?>[] {int.class, Map.class}, b, Map.of(new TopicIdPartition(topic, 0), dirs.get(b - 1).get(0)));
        invoke(ctx, "fenceBrokers", new Class<?>[] {Set.class}, Set.of(1));
        invoke(ctx, "fenceBrokers", new Class<?>[] {Set.class}, Set.of(1, 2));
        invoke(ctx, "fenceBrokers", new Class<?>[] {Set.class}, Set.of(1, 2, 3));
        System.out.println("clean " + clean + ", assigns first " + assignsFirst);
        tell("all down", replication, topic);
        long former = cluster.brokerRegistrations().get(3).epoch(), epoch = former + 1000;
        FeatureControlManager features = (FeatureControlManager) field(ctx, "featureControl");
        FinalizedControllerFeatures finalized = features.finalizedFeatures(Long.MAX_VALUE);
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData().setBrokerId(3)
            .setClusterId((String) field(cluster, "clusterId")).setIncarnationId(Uuid.randomUuid())
            .setLogDirs(List.of(dirs.get(2).get(1))).setPreviousBrokerEpoch(clean ? former : -1);
        BrokerRegistrationRequestData.FeatureCollection given = new BrokerRegistrationRequestData.FeatureCollection();
        for (Map.Entry<String, Short> one : finalized.featureMap().entrySet())
            given.add(new BrokerRegistrationRequestData.Feature().setName(one.getKey())
                .setMinSupportedVersion((short) Math.min(1, one.getValue())).setMaxSupportedVersion(one.getValue()));
        request.setFeatures(given);
        Method register = Arrays.stream(ClusterControlManager.class.getDeclaredMethods()).filter(m -> m.getName().equals("registerBroker")).findFirst().get();
        register.setAccessible(true);
        replay(ctx, (ControllerResult<?>) register.invoke(cluster, request, epoch, finalized, true));
        tell("3 registered without the directory", replication, topic);
        if (assignsFirst) assign(ctx, replication, topic, epoch, dirs.get(2).get(1));
        heartbeat(ctx, replication, epoch);
        tell("3 unfenced", replication, topic);
        if (!assignsFirst) assign(ctx, replication, topic, epoch, dirs.get(2).get(1));
        heartbeat(ctx, replication, epoch);
        tell("3 assigned", replication, topic);
        invoke(ctx, "unfenceBrokers", new Class<?>[] {Integer[].class}, (Object) new Integer[] {1});
        tell("1 unfenced", replication, topic);
        invoke(ctx, "unfenceBrokers", new Class<?>[] {Integer[].class}, (Object) new Integer[] {1, 2});
        tell("2 unfenced", replication, topic);
    }
    static void tell(String when, ReplicationControlManager replication, Uuid topic) {
        PartitionRegistration state = replication.getPartition(topic, 0);
        System.out.println("  " + when + ": leader " + state.leader + " isr " + Arrays.toString(state.isr) + " elr " + Arrays.toString(state.elr));
    }
    static void assign(Object ctx, ReplicationControlManager replication, Uuid topic, long epoch, Uuid directory) throws Exception {
        replay(ctx, replication.handleAssignReplicasToDirs(new AssignReplicasToDirsRequestData().setBrokerId(3).setBrokerEpoch(epoch)
            .setDirectories(List.of(new AssignReplicasToDirsRequestData.DirectoryData().setId(directory).setTopics(List.of(
                new AssignReplicasToDirsRequestData.TopicData().setTopicId(topic).setPartitions(List.of(
                    new AssignReplicasToDirsRequestData.PartitionData().setPartitionIndex(0)))))))));
    }
    static void heartbeat(Object ctx, ReplicationControlManager replication, long epoch) throws Exception {
        replay(ctx, replication.processBrokerHeartbeat(new BrokerHeartbeatRequestData().setBrokerId(3).setBrokerEpoch(epoch)
            .setCurrentMetadataOffset(1000000).setWantFence(false).setWantShutDown(false), 100));
    }
    public static void main(String[] args) throws Exception {
        for (boolean clean : new boolean[] {true, false})
            for (boolean first : new boolean[] {true, false}) story(clean, first);
        System.exit(0);
    }
}
