package highwater;

import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** LogManager with two log directories, over processes that stop, crash, and lose a directory. */
public final class LogDirectoriesSubject implements Subject {
    private static final int DIRECTORIES = 2, PARTITIONS = 3;
    private static final String RECOVERY_POINTS = "recovery-point-offset-checkpoint";
    private static final String LOG_STARTS = "log-start-offset-checkpoint";

    private final Clock clock = new Clock();
    private final List<File> directories = new ArrayList<>();
    private boolean[] failed;
    private Release process;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        directories.clear();
        for (int number = 0; number < DIRECTORIES; number++)
            directories.add(Folders.next());
        failed = new boolean[DIRECTORIES];
        process = null;
        try {
            List<Object> seen = new ArrayList<>();
            for (Object each : operations)
                seen.add(shown(answer(Subject.list(each))));
            return seen;
        } finally {
            crash();
            directories.forEach(Folders::remove);
        }
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
                process = new Release(directories, offline, clock);
                return process.start();
            case "stop":
                if (process != null)
                    process.stop(Subject.offset(operation.get(1)));
                process = null;
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

    /** A directory fails, unless that would end the process. */
    private void fail(int number) throws Exception {
        if (failed[number] || (process != null && failed[1 - number]))
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
        boolean has = false;
        for (int partition = 0; partition < PARTITIONS; partition++)
            has |= new File(directories.get(number), "t-" + partition).exists()
                && new File(directories.get(1 - number), "t-" + partition).exists();
        if (has) {
            Folders.remove(directories.get(number));
            directories.get(number).mkdirs();
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
                    (Boolean) operation.get(4));
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
            shown.add(failed[number] ? "failed" : Arrays.asList(Release.marker(directories.get(number)),
                file(directories.get(number), RECOVERY_POINTS), file(directories.get(number), LOG_STARTS)));
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
