package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import kafka.server.LogOffsetMetadata;
import kafka.server.checkpoints.LeaderEpochCheckpoint;
import kafka.server.epoch.EpochEntry;
import kafka.server.epoch.LeaderEpochFileCache;
import org.apache.kafka.common.TopicPartition;
import scala.Tuple2;
import scala.collection.Seq;
import scala.collection.mutable.ListBuffer;
import scala.runtime.AbstractFunction0;

/** LeaderEpochFileCache of 0.11 to 2.0, which asks for the log end offset itself. */
public final class EpochCache extends AbstractFunction0<LogOffsetMetadata> implements Subject, LeaderEpochCheckpoint {
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);
    private Seq<EpochEntry> content = new ListBuffer<>();
    private LeaderEpochFileCache cache;
    private long leo;

    @Override
    public LogOffsetMetadata apply() {
        return new LogOffsetMetadata(leo, 0L, 0);
    }

    @Override
    public void write(Seq<EpochEntry> epochs) {
        content = epochs.toBuffer(); // A copy, as a file is one.
    }

    @Override
    public Seq<EpochEntry> read() {
        return content;
    }

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        content = new ListBuffer<>();
        leo = 0;
        cache = new LeaderEpochFileCache(PARTITION, this, this);
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            Object answer = answer(operation);
            seen.add(Arrays.asList(answer, shown(cache.epochEntries())));
        }
        return seen;
    }

    private Object answer(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "assign":
                cache.assign(Subject.number(operation.get(1)), Subject.offset(operation.get(2)));
                break;
            case "end":
                leo = Subject.offset(operation.get(2));
                // 1.1 answers with the offset alone.
                Object end = LeaderEpochFileCache.class.getMethod("endOffsetFor", int.class)
                    .invoke(cache, Subject.number(operation.get(1)));
                return end instanceof Tuple2
                    ? Arrays.asList(((Tuple2<?, ?>) end)._1(), ((Tuple2<?, ?>) end)._2())
                    : Arrays.asList(end);
            case "truncate-end":
                cache.clearAndFlushLatest(Subject.offset(operation.get(1)));
                break;
            case "truncate-start":
                cache.clearAndFlushEarliest(Subject.offset(operation.get(1)));
                break;
            case "clear":
                cache.clearAndFlush();
                break;
            case "load":
                cache = new LeaderEpochFileCache(PARTITION, this, this);
                break;
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
        return null;
    }

    private static List<Object> shown(Seq<EpochEntry> entries) {
        List<Object> found = new ArrayList<>();
        for (int index = 0; index < entries.size(); index++)
            found.add(Arrays.asList(entries.apply(index).epoch(), entries.apply(index).startOffset()));
        return found;
    }
}
