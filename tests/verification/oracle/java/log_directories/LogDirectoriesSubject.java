package highwater;

import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;

/** LogManager with two log directories, over processes that stop, crash, and lose a directory. */
public final class LogDirectoriesSubject implements Subject {
    private static final int DIRECTORIES = 2, PARTITIONS = 3;
    private static final String RECOVERY_POINTS = "recovery-point-offset-checkpoint";
    private static final String LOG_STARTS = "log-start-offset-checkpoint";
    private static final String EPOCHS = "leader-epoch-checkpoint", MARKER = ".kafka_cleanshutdown";
    private static final String TOPIC_ID = "partition.metadata", SNAPSHOTS = "producer-snapshot";

    /** A file's text, and the one before it that had other entries. */
    private static final class Versions {
        private List<Object> entries = List.of();
        private String last = "";
        String former = "";

        void note(List<Object> found, String text) {
            if (!found.equals(entries))
                former = last;
            entries = found;
            last = text;
        }

        void mark(String text) {
            former = last;
            last = text;
        }
    }

    private final Clock clock = new Clock();
    private final List<File> directories = new ArrayList<>();
    private final Map<File, Versions> versions = new HashMap<>();
    private final Map<File, String> unreadable = new HashMap<>();
    private final Map<Integer, Integer> strays = new HashMap<>();
    private boolean isDamaged;
    private boolean[] failed;
    private Release process;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        directories.clear();
        for (int number = 0; number < DIRECTORIES; number++)
            directories.add(Folders.next());
        failed = new boolean[DIRECTORIES];
        versions.clear();
        unreadable.clear();
        strays.clear();
        isDamaged = false;
        process = null;
        try {
            List<Object> seen = new ArrayList<>();
            for (Object each : operations)
                seen.add(seen(Subject.list(each)));
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

    private void crash() throws Exception {
        if (process != null)
            process.abandon();
        process = null;
    }

    private Object answer(List<Object> operation) throws Exception {
        String name = (String) operation.get(0);
        switch (name) {
            case "start":
                if (process != null || (failed[0] && failed[1]))
                    return null;
                List<File> offline = new ArrayList<>();
                for (int number = 0; number < DIRECTORIES; number++)
                    if (failed[number])
                        offline.add(directories.get(number));
                isDamaged = false;
                process = new Release(directories, offline, clock);
                return start();
            case "stop":
                if (process != null)
                    stop(Subject.offset(operation.get(1)));
                return null;
            case "damage":
                if (process == null)
                    damage((String) operation.get(1), (String) operation.get(2), Subject.number(operation.get(3)));
                return null;
            case "crash":
                crash();
                return null;
            case "checkpoint":
                if (process != null)
                    process.checkpoint();
                return null;
            case "fail":
                fail(Subject.number(operation.get(1)));
                return null;
            case "mend":
                mend(Subject.number(operation.get(1)));
                return null;
            default:
                if (process != null)
                    change(name, Subject.number(operation.get(1)), operation);
                return null;
        }
    }

    private List<Object> seen(List<Object> operation) throws Exception {
        Object answer = answer(operation);
        if (process != null)
            noteVersions();
        return shown(answer);
    }

    /** The logs are loaded, and those taken for stray are made anew, as the metadata has them there. */
    private Object start() throws Exception {
        Map<Integer, Integer> before = new HashMap<>(strays);
        before.values().removeIf(number -> failed[number]);
        for (int partition = 0; partition < PARTITIONS; partition++)
            for (int number = 0; number < DIRECTORIES; number++)
                if (!failed[number] && folder(number, partition).exists())
                    before.put(partition, number);
        long epoch;
        try {
            epoch = process.start();
        } catch (RuntimeException failure) {
            Object answer = notStarted(failure);
            before.forEach((partition, number) -> {
                if (!folder(number, partition).exists())
                    strays.put(partition, number);
            });
            return answer;
        }
        strays.values().removeIf(number -> !failed[number]);
        failUnread();
        if (process != null)
            for (int partition : process.logs().keySet())
                process.loadHighWatermark(partition);
        failUnread();
        if (process != null)
            for (int partition : before.keySet())
                if (!failed[before.get(partition)] && !process.logs().containsKey(partition))
                    process.create(partition, directories.get(before.get(partition)));
        failUnread();
        return epoch;
    }

    /** The process ends over the file with the topic's id, and an operator mends it. */
    private Object notStarted(RuntimeException failure) throws Exception {
        awaitLoaders();
        crash();
        for (int number = 0; number < DIRECTORIES; number++)
            for (File file : unreadable.keySet())
                if (!failed[number] && file.getName().equals(TOPIC_ID) && isIn(file, number)) {
                    repair(number);
                    isDamaged = true;
                    return "fails";
                }
        throw failure;
    }

    /** LogManager leaves its threads to themselves when one of them fails. */
    private static void awaitLoaders() throws InterruptedException {
        for (Thread thread : Thread.getAllStackTraces().keySet())
            if (thread.getName().startsWith("log-recovery-"))
                thread.join();
    }

    /** As LogDirFailureHandler of ReplicaManager does it; the process ends without any directory. */
    private void failUnread() throws Exception {
        for (int number = 0; number < DIRECTORIES && process != null; number++)
            if (!failed[number] && process.cannotRead(directories.get(number))) {
                boolean isLast = failed[1 - number];
                failed[number] = true;
                if (isLast)
                    crash();
                else
                    process.fail(directories.get(number));
            }
    }

    private void stop(long brokerEpoch) throws Exception {
        process.stop(brokerEpoch);
        process = null;
        for (int number = 0; number < DIRECTORIES; number++)
            if (!failed[number]) {
                File marker = new File(directories.get(number), MARKER);
                versions(marker).mark(Files.readString(marker.toPath()));
            }
    }

    private File folder(int number, int partition) {
        return new File(directories.get(number), "t-" + partition);
    }

    private Versions versions(File file) {
        return versions.computeIfAbsent(file, any -> new Versions());
    }

    private void noteVersions() throws Exception {
        for (int number = 0; number < DIRECTORIES; number++)
            if (!failed[number]) {
                for (String name : List.of(RECOVERY_POINTS, LOG_STARTS, Release.HIGH_WATERMARKS))
                    note(new File(directories.get(number), name));
                for (int partition = 0; partition < PARTITIONS; partition++)
                    note(new File(folder(number, partition), EPOCHS));
            }
    }

    private void note(File file) throws Exception {
        List<Object> entries = new ArrayList<>();
        String text = file.exists() ? Files.readString(file.toPath()) : "";
        text.lines().skip(2).sorted().forEach(entries::add);
        versions(file).note(entries, text);
    }

    /** A file is lost, a version old, or half written. */
    private void damage(String name, String how, int partition) throws Exception {
        isDamaged = true;
        int number = placeOf(partition);
        if (number < 0 || failed[number] || isUnreadable(number))
            return;
        boolean isOfLog = name.equals(EPOCHS) || name.equals(TOPIC_ID), isStray = !new File(folder(number, partition), TOPIC_ID).exists();
        if (isStray && (isOfLog || name.equals(SNAPSHOTS)))
            return;
        if (how.equals("half-written") && hasStray(number) && !name.equals(SNAPSHOTS) && !name.equals(MARKER))
            return;
        File file = new File(isOfLog ? folder(number, partition) : directories.get(number), name);
        if (name.equals(SNAPSHOTS))
            damageSnapshots(folder(number, partition), how);
        else if (name.equals(MARKER))
            damageMarker(file, how);
        else if (how.equals("lost"))
            Files.deleteIfExists(file.toPath());
        else if (how.equals("half-written"))
            halfWrite(file, name.equals(TOPIC_ID) ? 1 : 2);
        else if (!name.equals(TOPIC_ID))
            Files.writeString(file.toPath(), isOfLog ? versions(file).former : ofLogs(number, versions(file).former));
    }

    /** A checkpoint file without the entries of logs that were deleted. */
    private String ofLogs(int number, String text) {
        List<String> kept = text.lines().skip(2).filter(line -> folder(number, Integer.parseInt(line.split(" ")[1])).exists()).toList();
        return text.isEmpty() ? "" : "0\n" + kept.size() + "\n" + kept.stream().map(line -> line + "\n").collect(Collectors.joining());
    }

    /** The directory of a log, also of one that the last process has taken for stray. */
    private int placeOf(int partition) {
        for (int number = 0; number < DIRECTORIES; number++)
            if (!failed[number] && (folder(number, partition).exists() || strays.getOrDefault(partition, -1) == number))
                return number;
        return -1;
    }

    private boolean hasStray(int number) {
        for (int partition = 0; partition < PARTITIONS; partition++)
            if (placeOf(partition) == number && !new File(folder(number, partition), TOPIC_ID).exists())
                return true;
        return false;
    }

    private boolean isUnreadable(int number) {
        return unreadable.keySet().stream().anyMatch(file -> isIn(file, number));
    }

    private boolean isIn(File file, int number) {
        return file.getPath().startsWith(directories.get(number).getPath() + "/");
    }

    private void halfWrite(File file, int kept) throws Exception {
        if (!file.exists())
            return;
        String text = Files.readString(file.toPath());
        List<String> lines = text.lines().toList();
        if (lines.size() > kept) {
            unreadable.put(file, text);
            Files.write(file.toPath(), lines.subList(0, kept));
        }
    }

    private static void damageSnapshots(File folder, String how) throws Exception {
        File[] all = folder.listFiles((in, name) -> name.endsWith(".snapshot"));
        Arrays.sort(all);
        for (int place = 0; place < all.length; place++)
            if (how.equals("half-written") && place == all.length - 1)
                Files.write(all[place].toPath(), Arrays.copyOf(Files.readAllBytes(all[place].toPath()), (int) all[place].length() / 2));
            else if (how.equals("lost") || place == all.length - 1)
                all[place].delete();
    }

    /** The former one is that of the shutdown before, even if the last one was unclean. */
    private void damageMarker(File file, String how) throws Exception {
        if (!file.exists())
            return;
        if (how.equals("lost"))
            file.delete();
        else if (how.equals("half-written"))
            Files.writeString(file.toPath(), Files.readString(file.toPath()).substring(0, 8));
        else if (!versions(file).former.isEmpty())
            Files.writeString(file.toPath(), versions(file).former);
    }

    /** A half-written file is deleted, but that of the topic's id is written again. */
    private void repair(int number) throws Exception {
        for (File file : List.copyOf(unreadable.keySet()))
            if (isIn(file, number)) {
                if (file.getName().equals(TOPIC_ID))
                    Files.writeString(file.toPath(), unreadable.get(file));
                else
                    file.delete();
                unreadable.remove(file);
            }
    }

    /** A directory fails, unless that would end the process, or it will fail with the next one. */
    private void fail(int number) throws Exception {
        if (failed[number] || (process != null && failed[1 - number]) || isUnreadable(number))
            return;
        failed[number] = true;
        if (process != null)
            process.fail(directories.get(number));
    }

    /** With the next process a failed directory works again; empty if the other one has one of its logs. */
    private void mend(int number) throws Exception {
        if (process != null || !failed[number])
            return;
        failed[number] = false;
        repair(number);
        boolean has = false;
        for (int partition = 0; partition < PARTITIONS; partition++)
            has |= (folder(number, partition).exists() || Integer.valueOf(number).equals(strays.get(partition)))
                && folder(1 - number, partition).exists();
        if (has) {
            Folders.remove(directories.get(number));
            directories.get(number).mkdirs();
            versions.keySet().removeIf(file -> isIn(file, number));
            strays.values().removeIf(place -> place == number);
        }
    }

    private void change(String name, int partition, List<Object> operation) throws Exception {
        if (name.equals("create")) {
            int number = Subject.number(operation.get(2));
            if (!failed[number] && !process.logs().containsKey(partition))
                process.create(partition, directories.get(number));
            return;
        }
        if (!process.logs().containsKey(partition))
            return;
        switch (name) {
            case "append":
                process.append(partition, Subject.number(operation.get(2)), Subject.number(operation.get(3)),
                    (Boolean) operation.get(4), Subject.number(operation.get(5)), Subject.number(operation.get(6)));
                return;
            case "hw":
                process.highWatermark(partition, Subject.offset(operation.get(2)));
                return;
            case "begin":
                process.begin(partition, Subject.offset(operation.get(2)));
                return;
            case "truncate":
                process.truncate(partition, Subject.offset(operation.get(2)));
                return;
            case "truncate-fully":
                process.truncateFully(partition, Subject.offset(operation.get(2)));
                return;
            case "delete":
                process.delete(partition);
                return;
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
    }

    private List<Object> shown(Object answer) throws Exception {
        List<Object> shown = new ArrayList<>(Arrays.asList(answer, process != null));
        for (int number = 0; number < DIRECTORIES; number++)
            shown.add(isDamaged ? "damaged" : failed[number] ? "failed" : Arrays.asList(Release.marker(directories.get(number)),
                file(directories.get(number), RECOVERY_POINTS), file(directories.get(number), LOG_STARTS),
                file(directories.get(number), Release.HIGH_WATERMARKS)));
        Map<Integer, Object> logs = process == null ? Map.of() : process.shown(directories);
        for (int partition = 0; partition < PARTITIONS; partition++)
            shown.add(logs.get(partition));
        return shown;
    }

    /** The entries of a checkpoint file. */
    private static List<Object> file(File directory, String name) throws Exception {
        Map<Integer, Object> entries = new TreeMap<>();
        File file = new File(directory, name);
        if (file.exists())
            for (String line : Files.readAllLines(file.toPath())) {
                String[] parts = line.split(" ");
                if (parts.length == 3)
                    entries.put(Integer.valueOf(parts[1]), Arrays.asList(Integer.valueOf(parts[1]), Long.valueOf(parts[2])));
            }
        return new ArrayList<>(entries.values());
    }
}
