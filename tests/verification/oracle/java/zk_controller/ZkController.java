package kafka.controller;

import java.io.File;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import highwater.Subject;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * The controller of a release with a ZooKeeper in this process. Brokers are znodes, and nobody answers the controller's
 * requests. Each case has a folder of ZooKeeper's and a controller of its own; no leader is 0.
 */
public final class ZkController implements Subject {
    private static final String TOPIC = "/brokers/topics/t";
    private static final String REASSIGNMENT = "/admin/reassign_partitions";

    private final int port;
    private final ZooKeeper zookeeper;
    private int cases;
    private int partitions;
    private String root;
    private Release controller;

    public ZkController() throws Exception {
        File folder = Files.createTempDirectory("zookeeper").toFile();
        NIOServerCnxnFactory server = new NIOServerCnxnFactory();
        server.configure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 100);
        server.startup(new ZooKeeperServer(folder, folder, 2_000));
        port = server.getLocalPort();
        CountDownLatch connected = new CountDownLatch(1);
        zookeeper = new ZooKeeper("127.0.0.1:" + port, 60_000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected)
                connected.countDown();
        });
        connected.await();
    }

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        root = "/case" + ++cases;
        partitions = 0;
        create("", "");
        boolean unclean = false;
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            if (operation.get(0).equals("unclean"))
                unclean = true;
        }
        controller = new Release("127.0.0.1:" + port + root, config(unclean));
        try {
            controller.settle();
            for (Object each : operations) {
                Object answer = answer(Subject.list(each));
                controller.settle();
                seen.add(Arrays.asList(answer, shown()));
            }
        } finally {
            controller.stop();
        }
        return seen;
    }

    private Properties config(boolean unclean) {
        Properties found = new Properties();
        found.put("broker.id", "0");
        found.put("zookeeper.connect", "127.0.0.1:" + port + root);
        found.put("unclean.leader.election.enable", String.valueOf(unclean));
        found.put("auto.leader.rebalance.enable", "false");
        return found;
    }

    private Object answer(List<Object> operation) throws Exception {
        String first = operation.size() > 1 ? String.valueOf(operation.get(1)) : "";
        switch ((String) operation.get(0)) {
            case "unclean": return "";
            case "change": return change(Subject.list(operation.get(1)), Subject.list(operation.get(2)));
            case "create": return createTopic(Subject.list(operation.get(1)));
            case "isr": return changeIsrs(Subject.list(operation.get(1)));
            case "prefer": return prefer(Subject.list(operation.get(1)));
            case "reassign": return reassign(Subject.list(operation.get(1)));
            case "shutdown": return exists("/brokers/ids/" + first) ? controller.shutDown(Integer.parseInt(first)) : "unknown";
            case "fail-over": delete("/controller"); return "";
            default: throw new IllegalStateException("unknown operation " + operation);
        }
    }

    // ZooKeeper.

    private void create(String path, String data) throws Exception {
        zookeeper.create(root + path, data.getBytes(StandardCharsets.UTF_8), ZooDefs.Ids.OPEN_ACL_UNSAFE,
            path.endsWith("_") ? CreateMode.PERSISTENT_SEQUENTIAL : CreateMode.PERSISTENT);
    }

    private void delete(String path) throws Exception {
        zookeeper.delete(root + path, -1);
    }

    private boolean exists(String path) throws Exception {
        return zookeeper.exists(root + path, false) != null;
    }

    /** The content of a znode, "" if there is none. */
    private String read(String path) throws Exception {
        try {
            return new String(zookeeper.getData(root + path, false, null), StandardCharsets.UTF_8);
        } catch (KeeperException.NoNodeException none) {
            return "";
        }
    }

    private static int field(String json, String name) {
        Matcher found = Pattern.compile('"' + name + "\":(-?\\d+)").matcher(json);
        return found.find() ? Integer.parseInt(found.group(1)) : -1;
    }

    private static List<Integer> list(String json, String name) {
        Matcher found = Pattern.compile('"' + name + "\":\\[([^\\]]*)\\]").matcher(json);
        List<Integer> values = new ArrayList<>();
        if (found.find())
            for (String value : found.group(1).split(","))
                if (!value.trim().isEmpty())
                    values.add(Integer.parseInt(value.trim()));
        return values;
    }

    // Brokers.

    /** Brokers go, then brokers come, some of them perhaps again, before the controller looks. */
    private String change(List<Object> down, List<Object> up) throws Exception {
        controller.block();
        try {
            for (Object broker : down)
                if (exists("/brokers/ids/" + broker))
                    delete("/brokers/ids/" + broker);
            for (Object broker : up)
                if (!exists("/brokers/ids/" + broker))
                    create("/brokers/ids/" + broker, "{\"listener_security_protocol_map\":{\"PLAINTEXT\":\"PLAINTEXT\"},"
                        + "\"endpoints\":[\"PLAINTEXT://127.0.0.1:1\"],\"jmx_port\":-1,\"host\":\"127.0.0.1\","
                        + "\"timestamp\":\"1\",\"port\":1,\"version\":4}");
            controller.told();
        } finally {
            controller.unblock();
        }
        return "";
    }

    // The partitions.

    private static String statePath(Object partition) {
        return TOPIC + "/partitions/" + partition + "/state";
    }

    /** The assignment of a partition. */
    private List<Integer> assignment(Object partition) throws Exception {
        Matcher found = Pattern.compile("\"partitions\":\\{[^}]*\\}").matcher(read(TOPIC));
        return found.find() ? list(found.group(), String.valueOf(partition)) : new ArrayList<>();
    }

    /** An entry of a list of partitions. */
    private static String named(Object partition, String rest) {
        return "{\"topic\":\"t\",\"partition\":" + partition + rest + "}";
    }

    private static String listed(List<String> entries) {
        return "{\"version\":1,\"partitions\":[" + String.join(",", entries) + "]}";
    }

    private String createTopic(List<Object> assignments) throws Exception {
        if (exists(TOPIC))
            return "unknown";
        List<String> entries = new ArrayList<>();
        for (Object replicas : assignments)
            entries.add("\"" + entries.size() + "\":" + highwater.Json.write(replicas));
        partitions = assignments.size();
        create(TOPIC, "{\"version\":1,\"partitions\":{" + String.join(",", entries) + "}}");
        return "";
    }

    /** Leaders write other ISRs, and announce them together. */
    private String changeIsrs(List<Object> changes) throws Exception {
        List<String> entries = new ArrayList<>();
        for (Object each : changes) {
            List<Object> change = Subject.list(each);
            if (changeIsr(change.get(0), change.get(1)))
                entries.add(named(change.get(0), ""));
        }
        if (entries.isEmpty())
            return "unknown";
        create("/isr_change_notification/isr_change_", listed(entries));
        return "";
    }

    /** The leader writes another ISR: itself, and those of these that are replicas and registered. */
    private boolean changeIsr(Object partition, Object wanted) throws Exception {
        String state = read(statePath(partition));
        int leader = field(state, "leader");
        if (leader < 1 || !exists("/brokers/ids/" + leader))
            return false;
        List<Object> isr = new ArrayList<>();
        for (int replica : assignment(partition))
            if (replica == leader || Subject.list(wanted).contains((long) replica) && exists("/brokers/ids/" + replica))
                isr.add(replica);
        String written = state.replaceAll("\"isr\":\\[[^\\]]*\\]", "\"isr\":" + highwater.Json.write(isr));
        zookeeper.setData(root + statePath(partition), written.getBytes(StandardCharsets.UTF_8), -1);
        return true;
    }

    private String prefer(List<Object> wanted) throws Exception {
        List<String> entries = new ArrayList<>();
        for (Object partition : wanted)
            if (!read(statePath(partition)).isEmpty())
                entries.add(named(partition, ""));
        if (entries.isEmpty() || exists("/admin/preferred_replica_election"))
            return "unknown";
        create("/admin/preferred_replica_election", listed(entries));
        return "";
    }

    private String reassign(List<Object> wanted) throws Exception {
        List<String> entries = new ArrayList<>();
        for (Object each : wanted) {
            List<Object> change = Subject.list(each);
            if (!read(statePath(change.get(0))).isEmpty())
                entries.add(named(change.get(0), ",\"replicas\":" + highwater.Json.write(change.get(1))));
        }
        if (entries.isEmpty() || exists(REASSIGNMENT))
            return "unknown";
        create(REASSIGNMENT, listed(entries));
        return "";
    }

    /** The assignment that is asked for. */
    private static List<Integer> target(String reassignments, int partition) {
        Matcher entries = Pattern.compile("\\{[^{}]*\\}").matcher(reassignments);
        while (entries.find())
            if (field(entries.group(), "partition") == partition)
                return list(entries.group(), "replicas");
        return new ArrayList<>();
    }

    /** Of each partition: leader, leader epoch, ISR, assignment, and the one that is asked for. */
    private List<Object> shown() throws Exception {
        List<Object> found = new ArrayList<>();
        String reassignments = read(REASSIGNMENT);
        for (int partition = 0; partition < partitions; partition++) {
            String state = read(statePath(partition));
            found.add(Arrays.asList(Math.max(field(state, "leader"), 0), field(state, "leader_epoch"), list(state, "isr"),
                assignment(partition), target(reassignments, partition)));
        }
        return found;
    }
}
