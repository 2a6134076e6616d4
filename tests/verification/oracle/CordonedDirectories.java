package org.apache.kafka.controller;

import java.lang.reflect.*;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;

/**
 * Which brokers get replicas of new topics while log directories are cordoned (KIP-1066, from 4.3 on)?
 *
 * Needs what OfflineDirectoryLeader.java needs, and is run in the same way.
 */
public class CordonedDirectories {
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
    public static void main(String[] args) throws Exception {
        Constructor<?> constructor = Class.forName(CONTEXT + "$Builder").getDeclaredConstructor();
        constructor.setAccessible(true);
        Object ctx = invoke(constructor.newInstance(), "build", new Class<?>[0]);
        ReplicationControlManager replication = (ReplicationControlManager) field(ctx, "replicationControl");
        ClusterControlManager cluster = (ClusterControlManager) field(ctx, "clusterControl");
        List<List<Uuid>> dirs = new ArrayList<>();
        for (int i = 0; i < 3; i++) dirs.add(List.of(Uuid.randomUuid(), Uuid.randomUuid()));
        invoke(ctx, "registerBrokersWithDirs", new Class<?>[] {Object[].class}, (Object) new Object[] {1, dirs.get(0), 2, dirs.get(1), 3, dirs.get(2)});
        invoke(ctx, "unfenceBrokers", new Class<?>[] {Integer[].class}, (Object) new Integer[] {1, 2, 3});
        tell("none cordoned", ctx, replication);
        cordon(ctx, replication, cluster, 2, dirs.get(1).subList(0, 1));
        tell("one directory of broker 2", ctx, replication);
        cordon(ctx, replication, cluster, 2, dirs.get(1));
        tell("both directories of broker 2", ctx, replication);
        cordon(ctx, replication, cluster, 3, dirs.get(2));
        tell("both of brokers 2 and 3", ctx, replication);
        cordon(ctx, replication, cluster, 3, List.of());
        tell("both of broker 2 again", ctx, replication);
        System.exit(0);
    }
    static void cordon(Object ctx, ReplicationControlManager replication, ClusterControlManager cluster, int broker, List<Uuid> cordoned) throws Exception {
        ControllerResult<?> result = replication.processBrokerHeartbeat(new BrokerHeartbeatRequestData().setBrokerId(broker)
            .setBrokerEpoch(cluster.brokerRegistrations().get(broker).epoch()).setCurrentMetadataOffset(1000000)
            .setWantFence(false).setWantShutDown(false).setCordonedLogDirs(cordoned), 100);
        System.out.println("  broker " + broker + " tells of " + cordoned.size() + ": " + result.records().size() + " record(s)");
        replay(ctx, result);
    }
    /** Creates ten topics of one partition with two replicas. */
    static void tell(String when, Object ctx, ReplicationControlManager replication) throws Exception {
        Set<Integer> used = new TreeSet<>();
        Set<String> errors = new TreeSet<>();
        for (int i = 0; i < 10; i++) {
            String name = when.replace(' ', '-') + "-" + i;
            CreateTopicsRequestData request = new CreateTopicsRequestData();
            request.topics().add(new CreateTopicsRequestData.CreatableTopic().setName(name).setNumPartitions(1).setReplicationFactor((short) 2));
            ControllerRequestContext context = ControllerRequestContextUtil.anonymousContextFor(org.apache.kafka.common.protocol.ApiKeys.CREATE_TOPICS);
            ControllerResult<CreateTopicsResponseData> result = replication.createTopics(context, request, Set.of(), false);
            CreateTopicsResponseData.CreatableTopicResult told = result.response().topics().find(name);
            if (told.errorCode() != 0) {
                errors.add(org.apache.kafka.common.protocol.Errors.forCode(told.errorCode()) + ": " + told.errorMessage());
            } else {
                replay(ctx, result);
                for (int one : replication.getPartition(told.topicId(), 0).replicas) used.add(one);
            }
        }
        System.out.println(when + ": replicas on " + used + " " + errors);
    }
}
