package highwater;

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;

/**
 * When the checkpoint files of a broker are written: what LogManager.startup and ReplicaManager hand to their scheduler,
 * which runs it at fixed rates. A file holds the number of the operation during which it was written last.
 */
public final class Checkpoints implements Subject {
    private static final String HW = "highwatermark-checkpoint";
    private static final String RECOVERY_POINT = "kafka-recovery-point-checkpoint";
    private static final String LOG_START = "kafka-log-start-offset-checkpoint";

    /** A task that runs at a fixed rate. */
    private static final class Task {
        private final long periodMs;
        private long dueMs;

        Task(long dueMs, long periodMs) {
            this.dueMs = dueMs;
            this.periodMs = periodMs;
        }
    }

    /** What the log managers of given settings schedule: the same each time, so that one of them is enough. */
    private final Map<List<Object>, Map<String, long[]>> known = new HashMap<>();
    private Map<String, Task> tasks;
    private Map<String, Integer> files;
    private List<Object> settings;
    private ReplicaManager replicas;
    private boolean hasPartition;
    private long nowMs;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        tasks = new HashMap<>();
        files = new HashMap<>();
        settings = Arrays.asList(5_000L, 60_000L, 60_000L);
        replicas = null;
        nowMs = 0;
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            long untilMs = perform(Subject.list(each));
            for (Map.Entry<String, Task> entry : tasks.entrySet())
                write(entry.getKey(), entry.getValue(), untilMs, seen.size());
            nowMs = untilMs;
            seen.add(Arrays.asList(files.get(HW), files.get(RECOVERY_POINT), files.get(LOG_START)));
        }
        return seen;
    }

    private void write(String file, Task task, long untilMs, int value) {
        for (; task.dueMs <= untilMs; task.dueMs += task.periodMs)
            if (!file.equals(HW) || hasPartition)
                files.put(file, value);
    }

    /** One operation; returns the time until which it lasts. */
    private long perform(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "settings":
                if (replicas == null)
                    settings = operation.subList(1, 4);
                break;
            case "start":
                if (replicas == null)
                    start();
                break;
            case "publish":
                if (replicas != null && schedule(HW))
                    hasPartition = Subject.number(operation.get(1)) != 0;
                break;
            case "decide": // Up to 2.6 a LeaderAndIsr, which begins both; in KRaft metadata must have been published.
                if (replicas != null && !Release.KRAFT)
                    schedule(HW);
                hasPartition = tasks.containsKey(HW);
                break;
            case "end":
                tasks.clear();
                replicas = null;
                break;
            case "time":
                return nowMs + Subject.offset(operation.get(1));
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
        return nowMs;
    }

    private void start() throws Exception {
        hasPartition = false;
        replicas = replicaManager();
        Map<String, long[]> found = known.get(settings);
        if (found == null) {
            found = new HashMap<>();
            File folder = Folders.next();
            Release.startLogManager(folder, config(), scheduler(found));
            Folders.remove(folder);
            known.put(settings, found);
        }
        for (String name : Arrays.asList(RECOVERY_POINT, LOG_START))
            if (found.containsKey(name))
                begin(name, found.get(name));
    }

    private void begin(String name, long[] delayAndPeriod) {
        tasks.put(name, new Task(nowMs + delayAndPeriod[0], delayAndPeriod[1]));
    }

    /** The replica manager is told to start its checkpoints; whether it had not done so before. */
    private boolean schedule(String name) throws Exception {
        Map<String, long[]> found = new HashMap<>();
        set(replicas, "scheduler", scheduler(found));
        for (Method method : ReplicaManager.class.getMethods())
            if (method.getName().equalsIgnoreCase("startHighWatermarkCheckPointThread")
                || method.getName().equals("startHighWaterMarksCheckPointThread"))
                method.invoke(replicas);
        if (!found.containsKey(name))
            return false;
        begin(name, found.get(name));
        return true;
    }

    private KafkaConfig config() {
        Properties properties = Release.properties();
        properties.setProperty("replica.high.watermark.checkpoint.interval.ms", settings.get(0).toString());
        properties.setProperty("log.flush.offset.checkpoint.interval.ms", settings.get(1).toString());
        if (Release.HAS_LOG_START)
            properties.setProperty("log.flush.start.offset.checkpoint.interval.ms", settings.get(2).toString());
        return new KafkaConfig(properties);
    }

    /** One without anything but what its checkpoint thread needs. */
    private ReplicaManager replicaManager() throws Exception {
        Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        ReplicaManager made = (ReplicaManager) ((sun.misc.Unsafe) unsafe.get(null)).allocateInstance(ReplicaManager.class);
        set(made, "config", config());
        set(made, "highWatermarkCheckPointThreadStarted", new AtomicBoolean(false));
        return made;
    }

    private static void set(Object object, String name, Object value) throws Exception {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        field.set(object, value);
    }

    /** A scheduler that notes the delay and the period of each task, in ms. */
    private static Object scheduler(Map<String, long[]> found) {
        Class<?> kind = Release.SCHEDULER;
        return Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind}, (proxy, method, given) -> {
            if (method.getName().equals("schedule")) {
                TimeUnit unit = given.length > 4 ? (TimeUnit) given[4] : TimeUnit.MILLISECONDS;
                found.put((String) given[0], new long[] {unit.toMillis((Long) given[2]), unit.toMillis((Long) given[3])});
                return null;
            }
            if (method.isDefault())
                return InvocationHandler.invokeDefault(proxy, method, given == null ? new Object[0] : given);
            return Class.forName(kind.getName() + "$class").getMethod(method.getName(), kind).invoke(null, proxy);
        });
    }
}
