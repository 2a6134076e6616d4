// Written by highwater ticket @name@
package org.apache.kafka.controller;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignablePartition;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignableTopic;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicResult;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.TopicIdPartition;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertTrue;

/**
 * @title@.
 *
 * ReplicationControlTestContext is private to ReplicationControlManagerTest. Pasted into that class, call("name", ...) can
 * be ctx.name(...), and context() its builder.
 */
public class @class@ {
    private static final String TOPIC = "foo";
    private static final String CONTEXT = ReplicationControlManagerTest.class.getName() + "$ReplicationControlTestContext";
    private static final int MIN_ISR = @min_isr@;

    private Object ctx;
    private ReplicationControlManager replication;
    private Uuid topicId;
    private PartitionRegistration before;
    private final TreeSet<Integer> down = new TreeSet<>();

    private static Object context() throws Exception {
        Constructor<?> constructor = Class.forName(CONTEXT + "$Builder").getDeclaredConstructor();
        constructor.setAccessible(true);
        Object builder = constructor.newInstance();
        invoke(builder, "setIsElrEnabled", new Class<?>[] {boolean.class}, true);
        return invoke(builder, "build", new Class<?>[0]);
    }

    private static Object invoke(Object target, String name, Class<?>[] types, Object... values) throws Exception {
        Method method = target.getClass().getDeclaredMethod(name, types);
        method.setAccessible(true);
        return method.invoke(target, values);
    }

    private void call(String name, Integer... brokers) throws Exception {
        invoke(ctx, name, new Class<?>[] {Integer[].class}, (Object) brokers);
    }

    private PartitionRegistration partition() {
        return replication.getPartition(topicId, 0);
    }

    private void reassign(Integer... replicas) throws Exception {
        List<Integer> wanted = replicas.length == 0 ? null : List.of(replicas);
        var result = replication.alterPartitionReassignments(new AlterPartitionReassignmentsRequestData().setTopics(
            List.of(new ReassignableTopic().setName(TOPIC).setPartitions(List.of(
                new ReassignablePartition().setPartitionIndex(0).setReplicas(wanted))))));
        invoke(ctx, "replay", new Class<?>[] {List.class}, result.records());
        check("a reassignment");
    }

    /** The leader proposes an ISR. */
    private void proposeIsr(Integer... isr) throws Exception {
        List<BrokerState> members = new ArrayList<>();
        for (int broker : isr)
            members.add(new BrokerState().setBrokerId(broker)
                .setBrokerEpoch((long) invoke(ctx, "currentBrokerEpoch", new Class<?>[] {int.class}, broker)));
        invoke(ctx, "alterPartition", new Class<?>[] {TopicIdPartition.class, int.class, List.class, LeaderRecoveryState.class},
            new TopicIdPartition(topicId, 0), partition().leader, members, LeaderRecoveryState.RECOVERED);
        check("AlterPartition");
    }

    /** All but those that are down send heartbeats, until the sessions of these are over. */
    private void fence() throws Exception {
        invoke(ctx, "fenceBrokers", new Class<?>[] {Set.class}, down);
    }

    private void stop(int broker) throws Exception {
        call("inControlledShutdownBrokers", broker);
        down.add(broker);
        fence();
        check("a controlled shutdown");
    }

    private void endUncleanly(int broker) throws Exception {
        down.add(broker);
        fence();
        check("an unclean end");
    }

    private void start(int broker, boolean wasCleanShutdown) throws Exception {
        down.remove(broker);
        invoke(ctx, "handleBrokersShutdown", new Class<?>[] {boolean.class, Integer[].class}, wasCleanShutdown,
            new Integer[] {broker});
        call("registerBrokers", broker);
        call("unfenceBrokers", broker);
        check("a start");
    }

    private void setConfig(String key, String value) throws Exception {
        invoke(ctx, "alterTopicConfig", new Class<?>[] {String.class, String.class, String.class}, TOPIC, key, value);
    }

    private static TreeSet<Integer> set(int[] brokers) {
        return Arrays.stream(brokers).boxed().collect(Collectors.toCollection(TreeSet::new));
    }

    private void check(String what) {
        PartitionRegistration state = partition();
        TreeSet<Integer> replicas = set(state.replicas);
@checks@
        before = state;
    }

    @Test
    public void @method@() throws Exception {
        ctx = context();
        Field field = ctx.getClass().getDeclaredField("replicationControl");
        field.setAccessible(true);
        replication = (ReplicationControlManager) field.get(ctx);
        call("registerBrokers", @brokers@);
        call("unfenceBrokers", @brokers@);
        topicId = ((CreatableTopicResult) invoke(ctx, "createTestTopic",
            new Class<?>[] {String.class, int[][].class, Map.class, short.class}, TOPIC, new int[][] {new int[] {@replicas@}},
            Map.of("min.insync.replicas", "@min_isr@"), (short) 0)).topicId();
        before = partition();
