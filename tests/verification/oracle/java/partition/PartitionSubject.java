package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** Partition on broker 1, which leads or follows. */
public final class PartitionSubject implements Subject {
    static final long LAG_MS = 10_000;

    /** What the broker's metadata say of another one; those it does not know are not there. */
    static final class Registration {
        final String state;
        final long epoch;

        Registration(String state, long epoch) {
            this.state = state;
            this.epoch = epoch;
        }
    }

    private final Clock clock = new Clock();
    private final Map<Integer, Registration> brokers = new HashMap<>();
    private final List<long[]> waiting = new ArrayList<>();
    private final TreeSet<Long> ends = new TreeSet<>();
    private Release partition;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        clock.nowMs = Clock.START_MS;
        brokers.clear();
        waiting.clear();
        ends.clear();
        File folder = Folders.next();
        partition = new Release(folder, clock, brokers);
        try {
            List<Object> seen = new ArrayList<>();
            for (Object each : operations) {
                Object answer = answer(Subject.list(each));
                List<Object> shown = new ArrayList<>();
                ends.add(partition.logEnd());
                shown.add(answer);
                shown.add(completed());
                shown.addAll(partition.state());
                seen.add(shown);
            }
            return seen;
        } finally {
            partition.close();
            Folders.remove(folder);
        }
    }

    private Object answer(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "lead":
                partition.lead(number(operation, 1), number(operation, 2), ids(operation.get(3)), ids(operation.get(4)));
                return null;
            case "follow":
                partition.follow(number(operation, 1), number(operation, 2), number(operation, 3), ids(operation.get(4)));
                return null;
            case "append":
                boolean acksAll = (Boolean) operation.get(2);
                String error = partition.append(number(operation, 1), acksAll);
                if (error == null && acksAll)
                    waiting.add(new long[] {partition.logEnd()});
                return error;
            case "copy":
                return partition.copy(number(operation, 1), number(operation, 2));
            case "truncate":
                truncate(Subject.offset(operation.get(1)));
                return null;
            case "fetch":
                return partition.fetch(number(operation, 1), Subject.offset(operation.get(2)),
                    Subject.offset(operation.get(3)), Subject.offset(operation.get(4)), Subject.offset(operation.get(5)));
            case "read":
                return partition.fetch(-1, -1, Subject.offset(operation.get(1)), Subject.offset(operation.get(2)), -1);
            case "ends":
                return partition.epochEnd(Subject.offset(operation.get(1)), number(operation, 2));
            case "latest":
                return partition.latest(Subject.offset(operation.get(1)), (Boolean) operation.get(2));
            case "shrink":
                partition.shrink();
                return null;
            case "wait":
                clock.nowMs += Subject.offset(operation.get(1));
                return null;
            case "broker":
                brokers.put(number(operation, 1),
                    new Registration((String) operation.get(2), Subject.offset(operation.get(3))));
                return null;
            case "min-isr":
                partition.minIsr(number(operation, 1));
                return null;
            default:
                partition.decide(operation);
                return null;
        }
    }

    /** To where the batch begins that holds the offset: into one is for subject log. */
    private void truncate(long offset) throws Exception {
        Long begins = ends.floor(offset);
        partition.truncate(begins == null ? 0 : begins);
        ends.tailSet(partition.logEnd(), false).clear();
    }

    /** Writes with acks=all that are done with: up to where, and the error. */
    private List<Object> completed() {
        List<Object> found = new ArrayList<>();
        for (int place = 0; place < waiting.size();) {
            String outcome = partition.outcome(waiting.get(place)[0]);
            if (outcome == null) {
                place++;
                continue;
            }
            found.add(Arrays.asList(waiting.remove(place)[0], outcome));
        }
        return found;
    }

    private static int number(List<Object> operation, int place) {
        return Subject.number(operation.get(place));
    }

    private static List<Integer> ids(Object value) {
        List<Integer> found = new ArrayList<>();
        for (Object each : Subject.list(value))
            found.add(Subject.number(each));
        return found;
    }

    static List<Object> sorted(Iterable<?> ids) {
        TreeSet<Integer> found = new TreeSet<>();
        for (Object id : ids)
            found.add((Integer) id);
        return new ArrayList<>(found);
    }
}
