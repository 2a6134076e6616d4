package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import kafka.server.LogOffsetMetadata; // before 2.6.0
import kafka.server.checkpoints.LeaderEpochCheckpoint;
import kafka.server.epoch.EpochEntry;
import kafka.server.epoch.LeaderEpochFileCache;
import org.apache.kafka.common.TopicPartition;
import scala.Tuple2;
import scala.collection.Seq;
import scala.collection.mutable.ListBuffer;
import scala.runtime.AbstractFunction0;

/** LeaderEpochFileCache up to 2.8, which asks for the log end offset itself. */
public final class EpochCache extends AbstractFunction0<LogOffsetMetadata> implements Subject, LeaderEpochCheckpoint { // before 2.6.0
public final class EpochCache extends AbstractFunction0<Object> implements Subject, LeaderEpochCheckpoint { // from 2.6.0
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);
    private Seq<EpochEntry> content = new ListBuffer<>();
    private LeaderEpochFileCache cache;
    private long leo;

    @Override
    public LogOffsetMetadata apply() { // before 2.6.0
        return new LogOffsetMetadata(leo, 0L, 0); // before 2.6.0
    public Object apply() { // from 2.6.0
        return leo; // from 2.6.0
    }

    @Override
    public void write(Seq<EpochEntry> epochs) {
        content = epochs.toBuffer(); // A copy, as a file is one. // before 2.6.0
        content = epochs.reverse(); // A copy, as a file is one. // from 2.6.0
    }

    @Override
    public Seq<EpochEntry> read() {
        return content; // before 2.6.0
        return content.reverse(); // from 2.6.0
    }

    @Override
    public List<Object> run(List<Object> operations) throws Exception { // before 2.6.0
    public List<Object> run(List<Object> operations) { // from 2.6.0
        content = new ListBuffer<>();
        leo = 0;
        cache = new LeaderEpochFileCache(PARTITION, this, this);
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            Object answer = answer(operation); // before 2.6.0
            Object answer; // from 2.6.0
            try { // from 2.6.0
                answer = answer(operation); // from 2.6.0
            } catch (IllegalArgumentException refused) { // from 2.6.0
                answer = "refused"; // from 2.6.0
            } // from 2.6.0
            seen.add(Arrays.asList(answer, shown(cache.epochEntries())));
        }
        return seen;
    }

    private Object answer(List<Object> operation) throws Exception { // before 2.6.0
    private Object answer(List<Object> operation) { // from 2.6.0
        switch ((String) operation.get(0)) {
            case "assign":
                cache.assign(Subject.number(operation.get(1)), Subject.offset(operation.get(2)));
                break;
            case "end":
                leo = Subject.offset(operation.get(2));
                // 1.1 answers with the offset alone. // before 2.6.0
                Object end = LeaderEpochFileCache.class.getMethod("endOffsetFor", int.class) // before 2.6.0
                    .invoke(cache, Subject.number(operation.get(1))); // before 2.6.0
                return end instanceof Tuple2 // before 2.6.0
                    ? Arrays.asList(((Tuple2<?, ?>) end)._1(), ((Tuple2<?, ?>) end)._2()) // before 2.6.0
                    : Arrays.asList(end); // before 2.6.0
                Tuple2<Object, Object> end = cache.endOffsetFor(Subject.number(operation.get(1))); // from 2.6.0
                return Arrays.asList(end._1(), end._2()); // from 2.6.0
            case "truncate-end":
                cache.clearAndFlushLatest(Subject.offset(operation.get(1))); // before 2.6.0
                cache.truncateFromEnd(Subject.offset(operation.get(1))); // from 2.6.0
                break;
            case "truncate-start":
                cache.clearAndFlushEarliest(Subject.offset(operation.get(1))); // before 2.6.0
                cache.truncateFromStart(Subject.offset(operation.get(1))); // from 2.6.0
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
