package org.apache.kafka.controller;

import java.lang.reflect.*;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicResult;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.TopicIdPartition;

/**
 * Does a heartbeat that ends fencing elect a leader in the log directory that it reports as failed?
 *
 * Needs kafka_2.13, the test jars of kafka-metadata, kafka-server-common and kafka-clients, mockito-core and JUnit in one folder:
 * javac -cp "lib/*" -d out OfflineDirectoryLeader.java, then java -cp "out:lib/*" org.apache.kafka.controller.OfflineDirectoryLeader.
 * With an argument it runs without ELR only, as 3.9 needs.
 */
public class OfflineDirectoryLeader {
    static final String CONTEXT = ReplicationControlManagerTest.class.getName() + "$ReplicationControlTestContext";
    static Object invoke(Object target, String name, Class<?>[] types, Object... values) throws Exception {
        Method method = target.getClass().getDeclaredMethod(name, types);
        method.setAccessible(true);
        return method.invoke(target, values);
    }
    static void story(boolean elr, boolean together) throws Exception {
        Constructor<?> constructor = Class.forName(CONTEXT + "$Builder").getDeclaredConstructor();
        constructor.setAccessible(true);
        Object builder = constructor.newInstance();
        if (elr) invoke(builder, "setIsElrEnabled", new Class<?>[] {boolean.class}, true);
        Object ctx = invoke(builder, "build", new Class<?>[0]);
        Field field = ctx.getClass().getDeclaredField("replicationControl");
        field.setAccessible(true);
        ReplicationControlManager replication = (ReplicationControlManager) field.get(ctx);
        field = ctx.getClass().getDeclaredField("clusterControl");
        field.setAccessible(true);
        ClusterControlManager cluster = (ClusterControlManager) field.get(ctx);
        List<List<Uuid>> dirs = new ArrayList<>();
        for (int i = 0; i < 3; i++) dirs.add(List.of(Uuid.randomUuid(), Uuid.randomUuid()));
        invoke(ctx, "registerBrokersWithDirs", new Class<?>[] {Object[].class}, (Object) new Object[] {1, dirs.get(0), 2, dirs.get(1), 3, dirs.get(2)});
        invoke(ctx, "unfenceBrokers", new Class<?>[] {Integer[].class}, (Object) new Integer[] {1, 2, 3});
        Uuid topic = ((CreatableTopicResult) invoke(ctx, "createTestTopic",
            new Class<?>[] {String.class, int[][].class, Map.class, short.class}, "foo", new int[][] {new int[] {1, 2, 3}},
            Map.of("min.insync.replicas", "2"), (short) 0)).topicId();
        TopicIdPartition partition = new TopicIdPartition(topic, 0);
        for (int b = 1; b <= 3; b++)
            invoke(ctx, "assignReplicasToDirs", new Class<?>[] {int.class, Map.class}, b, Map.of(partition, dirs.get(b - 1).get(0)));
        invoke(ctx, "fenceBrokers", new Class<?>[] {Set.class}, Set.of(2));
        invoke(ctx, "fenceBrokers", new Class<?>[] {Set.class}, Set.of(2, 3));
        invoke(ctx, "fenceBrokers", new Class<?>[] {Set.class}, Set.of(1, 2, 3));
        System.out.println("elr " + elr + " together " + together + " before: " + replication.getPartition(topic, 0));
        long epoch = cluster.brokerRegistrations().get(1).epoch();
        if (!together) heartbeat(ctx, replication, epoch, List.of(), true);
        if (!together) heartbeat(ctx, replication, epoch, List.of(dirs.get(0).get(0)), true);
        heartbeat(ctx, replication, epoch, List.of(dirs.get(0).get(0)), false);
        PartitionRegistration state = replication.getPartition(topic, 0);
        System.out.println("  1 unfenced: leader " + state.leader + " isr " + Arrays.toString(state.isr) + " elr " + Arrays.toString(state.elr)
            + " directory of 1 online: " + cluster.hasOnlineDir(1, dirs.get(0).get(0)) + " fenced " + cluster.brokerRegistrations().get(1).fenced());
        heartbeat(ctx, replication, epoch, List.of(dirs.get(0).get(0)), false);
        invoke(ctx, "unfenceBrokers", new Class<?>[] {Integer[].class}, (Object) new Integer[] {2, 3});
        state = replication.getPartition(topic, 0);
        System.out.println("  all unfenced: leader " + state.leader + " isr " + Arrays.toString(state.isr) + " elr " + Arrays.toString(state.elr));
    }
    static void heartbeat(Object ctx, ReplicationControlManager replication, long epoch, List<Uuid> offline, boolean fence) throws Exception {
        ControllerResult<?> result = replication.processBrokerHeartbeat(new BrokerHeartbeatRequestData().setBrokerId(1).setBrokerEpoch(epoch)
            .setCurrentMetadataOffset(1000).setWantFence(fence).setWantShutDown(false).setOfflineLogDirs(offline), 100);
        invoke(ctx, "replay", new Class<?>[] {List.class}, result.records());
    }
    public static void main(String[] args) throws Exception {
        for (boolean elr : args.length > 0 ? new boolean[] {false} : new boolean[] {false, true})
            for (boolean together : new boolean[] {true, false}) story(elr, together);
        System.exit(0);
    }
}
