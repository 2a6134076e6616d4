package highwater;

import java.io.File;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;

/** A log with its leader epochs, its producers and its checkpoints, through clean and unclean restarts. */
public final class LogSubject implements Subject {
    private final Clock clock = new Clock();
    private File folder;
    private final List<String> toLose = new ArrayList<>();
    private Release log;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        folder = Folders.next();
        toLose.clear();
        log = new Release(folder, clock, 0, 0, true);
        try {
            List<Object> seen = new ArrayList<>();
            for (Object each : operations) {
                List<Object> shown = new ArrayList<>();
                if (log != null)
                    shown.add(answer(Subject.list(each)));
                if (log != null)
                    shown.addAll(log.state());
                seen.add(shown);
            }
            return seen;
        } finally {
            if (log != null)
                log.abandon();
            Folders.remove(folder);
        }
    }

    private Object answer(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "append":
                if ((Boolean) operation.get(3))
                    log.roll();
                log.lead(number(operation, 1), number(operation, 2), -1, -1, -1);
                return null;
            case "send":
                return log.lead(number(operation, 4), number(operation, 5), number(operation, 1), number(operation, 2),
                    number(operation, 3));
            case "copy":
                return log.copy(Subject.offset(operation.get(1)), number(operation, 2), number(operation, 3));
            case "truncate":
                log.truncate(Subject.offset(operation.get(1)));
                return null;
            case "truncate-fully":
                log.truncateFully(Subject.offset(operation.get(1)));
                return null;
            case "hw":
                log.highWatermark(Subject.offset(operation.get(1)));
                return null;
            case "start":
                log.start(Math.min(Subject.offset(operation.get(1)), log.highWatermark()));
                return null;
            case "delete":
                log.deleteSegments();
                return null;
            case "lose":
                toLose.add((String) operation.get(1));
                return null;
            case "restart":
                return restart();
            case "crash":
                return crash(number(operation, 1), Subject.offset(operation.get(2)), Subject.offset(operation.get(3)),
                    Subject.offset(operation.get(4)));
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
    }

    private String restart() throws Exception {
        long highWatermark = log.highWatermark(), start = log.start(), end = log.end();
        log.close();
        log = null;
        lose();
        try {
            log = new Release(folder, clock, start, end, true);
        } catch (RuntimeException failed) {
            return "fails";
        }
        return use(highWatermark);
    }

    /**
     * The newest batches are lost, and checkpoint files say what they are told to, or nothing. A log that cannot be
     * loaded is not looked at any more.
     */
    private String crash(int lost, long recoveryPoint, long start, long highWatermark) throws Exception {
        List<long[]> batches = log.batches();
        log.abandon();
        int kept = Math.max(0, batches.size() - lost);
        if (kept < batches.size())
            cut(batches.get(kept)[0], batches.get(kept)[1]);
        log = null;
        lose();
        try {
            log = new Release(folder, clock, start, recoveryPoint, false);
        } catch (RuntimeException failed) {
            return "fails";
        }
        return use(highWatermark);
    }

    /** What was loaded is looked at from now on, unless it ends below its start. */
    private String use(long highWatermark) throws Exception {
        if (log.end() < log.start()) {
            log.abandon();
            log = null;
            return "ends below its start";
        }
        log.highWatermark(highWatermark);
        return null;
    }

    /** What an earlier operation says is lost, or half written: its entries are gone, and their number is there. */
    private void lose() throws Exception {
        for (String name : toLose)
            for (File file : folder.listFiles()) {
                if (name.equals("snapshots") ? file.getName().endsWith(".snapshot") : name.equals("epochs")
                        && file.getName().equals("leader-epoch-checkpoint"))
                    file.delete();
                if (name.equals("half-epochs") && file.getName().equals("leader-epoch-checkpoint")) {
                    List<String> lines = Files.readAllLines(file.toPath());
                    if (lines.size() > 2)
                        Files.write(file.toPath(), lines.subList(0, 2));
                }
            }
        toLose.clear();
    }

    /** A segment ends at a position, and none follows it. */
    private void cut(long segment, long position) throws Exception {
        for (File file : folder.listFiles()) {
            if (!file.getName().endsWith(".log") || Long.parseLong(file.getName().split("[.]")[0]) < segment)
                continue;
            if (Long.parseLong(file.getName().split("[.]")[0]) > segment)
                file.delete();
            else
                try (RandomAccessFile content = new RandomAccessFile(file, "rw")) {
                    content.setLength(position);
                }
        }
    }

    private static int number(List<Object> operation, int place) {
        return Subject.number(operation.get(place));
    }
}
