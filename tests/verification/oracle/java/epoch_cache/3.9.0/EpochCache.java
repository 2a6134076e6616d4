package highwater;

import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.ScheduledFuture;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.EpochEntry;

/** LeaderEpochFileCache of the storage module, whose file is in memory. */
public final class EpochCache implements Subject {
    private static final class Memory extends LeaderEpochCheckpointFile {
        private List<EpochEntry> content = new ArrayList<>();

        Memory() throws Exception {
            super(File.createTempFile("epochs", null, FOLDER), null);
        }

        @Override
        public void write(Collection<EpochEntry> epochs) {
            content = new ArrayList<>(epochs);
        }

        @Override
        public void writeIfDirExists(Collection<EpochEntry> epochs) {
            write(epochs);
        }

        @Override
        public List<EpochEntry> read() {
            return content;
        }
    }

    private static final Scheduler AT_ONCE = new Scheduler() {
        public void startup() { }

        public void shutdown() { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            task.run();
            return null;
        }

        public void resizeThreadPool(int newSize) { }
    };
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);
    private static final File FOLDER = folder();
    private final Memory file;

    public EpochCache() throws Exception {
        file = new Memory();
    }

    private static File folder() {
        try {
            File folder = Files.createTempDirectory("oracle").toFile();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                for (File file : folder.listFiles())
                    file.delete();
                folder.delete();
            }));
            return folder;
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    @Override
    public List<Object> run(List<Object> operations) {
        file.write(List.of());
        LeaderEpochFileCache cache = new LeaderEpochFileCache(PARTITION, file, AT_ONCE);
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            Object answer = null;
            try {
                switch ((String) operation.get(0)) {
                    case "assign":
                        cache.assign(Subject.number(operation.get(1)), Subject.offset(operation.get(2)));
                        break;
                    case "end":
                        Map.Entry<Integer, Long> end =
                            cache.endOffsetFor(Subject.number(operation.get(1)), Subject.offset(operation.get(2)));
                        answer = Arrays.asList(end.getKey(), end.getValue());
                        break;
                    case "truncate-end":
                        cache.truncateFromEndAsyncFlush(Subject.offset(operation.get(1)));
                        break;
                    case "truncate-start":
                        cache.truncateFromStartAsyncFlush(Subject.offset(operation.get(1)));
                        break;
                    case "clear":
                        cache.clearAndFlush();
                        break;
                    case "load":
                        cache = new LeaderEpochFileCache(PARTITION, file, AT_ONCE);
                        break;
                    case "epoch-of":
                        answer = orNone(cache.epochForOffset(Subject.offset(operation.get(1))));
                        break;
                    case "near":
                        int epoch = Subject.number(operation.get(1));
                        answer = Arrays.asList(
                            orNone(cache.previousEpoch(epoch)),
                            cache.epochEntry(epoch).isPresent(),
                            orNone(cache.nextEpoch(epoch)));
                        break;
                    default:
                        throw new IllegalStateException("unknown operation " + operation);
                }
            } catch (IllegalArgumentException refused) {
                answer = "refused";
            }
            List<Object> entries = new ArrayList<>();
            for (Map.Entry<Integer, Long> entry : cache.epochWithOffsets().entrySet())
                entries.add(Arrays.asList(entry.getKey(), entry.getValue()));
            seen.add(Arrays.asList(answer, entries));
        }
        return seen;
    }

    private static Integer orNone(OptionalInt epoch) {
        return epoch.isPresent() ? epoch.getAsInt() : null;
    }
}
