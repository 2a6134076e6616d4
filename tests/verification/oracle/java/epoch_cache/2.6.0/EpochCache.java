package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import kafka.server.checkpoints.LeaderEpochCheckpoint;
import kafka.server.epoch.EpochEntry;
import kafka.server.epoch.LeaderEpochFileCache;
import org.apache.kafka.common.TopicPartition;
import scala.Tuple2;
import scala.collection.Seq;
import scala.collection.mutable.ListBuffer;
import scala.runtime.AbstractFunction0;

/** LeaderEpochFileCache of 2.1 to 2.8, which asks for the log end offset itself. */
public final class EpochCache extends AbstractFunction0<Object> implements Subject, LeaderEpochCheckpoint {
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);
    private Seq<EpochEntry> content = new ListBuffer<>();
    private LeaderEpochFileCache cache;
    private long leo;

    @Override
    public Object apply() {
        return leo;
    }

    @Override
    public void write(Seq<EpochEntry> epochs) {
        content = epochs.reverse(); // A copy, as a file is one.
    }

    @Override
    public Seq<EpochEntry> read() {
        return content.reverse();
    }

    @Override
    public List<Object> run(List<Object> operations) {
        content = new ListBuffer<>();
        leo = 0;
        cache = new LeaderEpochFileCache(PARTITION, this, this);
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            Object answer;
            try {
                answer = answer(operation);
            } catch (IllegalArgumentException refused) {
                answer = "refused";
            }
            seen.add(Arrays.asList(answer, shown(cache.epochEntries())));
        }
        return seen;
    }

    private Object answer(List<Object> operation) {
        switch ((String) operation.get(0)) {
            case "assign":
                cache.assign(Subject.number(operation.get(1)), Subject.offset(operation.get(2)));
                break;
            case "end":
                leo = Subject.offset(operation.get(2));
                Tuple2<Object, Object> end = cache.endOffsetFor(Subject.number(operation.get(1)));
                return Arrays.asList(end._1(), end._2());
            case "truncate-end":
                cache.truncateFromEnd(Subject.offset(operation.get(1)));
                break;
            case "truncate-start":
                cache.truncateFromStart(Subject.offset(operation.get(1)));
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
