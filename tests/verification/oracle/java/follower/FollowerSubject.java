package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Broker 2 follows broker 1 with a fetcher; each has a log. The leader is a Partition. */
public final class FollowerSubject implements Subject {
    static final int LOCAL = 2;

    private final Clock clock = new Clock();
    private final Map<Integer, PartitionSubject.Registration> brokers = new HashMap<>();
    private final List<Object> requests = new ArrayList<>();
    private Release leader;
    private Follower follower;
    private List<Object> before, after;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        clock.nowMs = Clock.START_MS;
        brokers.put(LOCAL, new PartitionSubject.Registration("alive", 1));
        File first = Folders.next(), second = Folders.next();
        leader = new Release(first, clock, brokers);
        follower = new Follower(second, clock, this);
        try {
            List<Object> seen = new ArrayList<>();
            for (Object each : operations) {
                requests.clear();
                act(Subject.list(each));
                List<Object> shown = new ArrayList<>();
                shown.add(new ArrayList<>(requests));
                shown.addAll(follower.state());
                shown.add(Follower.leading(leader));
                seen.add(shown);
            }
            return seen;
        } finally {
            leader.close();
            follower.close();
            Folders.remove(first);
            Folders.remove(second);
        }
    }

    private void act(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "lead":
                leader.lead(number(operation, 1), number(operation, 1),
                    (Boolean) operation.get(2) ? Arrays.asList(1, 2) : Arrays.asList(1), Arrays.asList(1, 2));
                return;
            case "resign":
                leader.follow(2, number(operation, 1), number(operation, 1), Arrays.asList(1, 2));
                return;
            case "append":
                leader.append(number(operation, 1), false);
                return;
            case "relay":
                leader.copy(number(operation, 1), number(operation, 2));
                return;
            case "cut":
                leader.truncate(Subject.offset(operation.get(1)));
                return;
            case "delete":
                leader.deleteBefore(Subject.offset(operation.get(1)));
                return;
            case "own":
                follower.own(number(operation, 1), number(operation, 2));
                return;
            case "hw":
                follower.highWatermark(Subject.offset(operation.get(1)));
                return;
            case "follow":
                follower.follow(number(operation, 1));
                return;
            case "leave":
                follower.leave();
                return;
            case "work":
                before = Subject.list(operation.get(1));
                after = Subject.list(operation.get(2));
                follower.work();
                return;
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
    }

    /** The first request of a round is under way for a while, and so is its answer. */
    private void meanwhile(List<Object> operations) {
        try {
            for (Object each : operations)
                act(Subject.list(each));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private void asked(Object... request) {
        requests.add(Arrays.asList(request));
        List<Object> now = before;
        before = List.of();
        meanwhile(now);
    }

    private <T> T answered(T answer) {
        List<Object> now = after;
        after = List.of();
        meanwhile(now);
        return answer;
    }

    Object fetch(long offset, long leaderEpoch, long lastEpoch) {
        asked("fetch", offset, leaderEpoch, lastEpoch);
        return answered(leader.fetch(LOCAL, 1, offset, leaderEpoch, lastEpoch));
    }

    Object epochEnd(long leaderEpoch, int epoch) {
        asked("ends", leaderEpoch, epoch);
        return answered(leader.epochEnd(leaderEpoch, epoch));
    }

    Object latest(long leaderEpoch) {
        requests.add(Arrays.asList("latest", leaderEpoch));
        return leader.latest(leaderEpoch, false);
    }

    /** It is refused for what a question for the latest offset is refused for. */
    Object earliest(long leaderEpoch) {
        requests.add(Arrays.asList("earliest", leaderEpoch));
        Object answer = leader.latest(leaderEpoch, false);
        return answer instanceof String ? answer : leader.logStart();
    }

    private static int number(List<Object> operation, int place) {
        return Subject.number(operation.get(place));
    }
}
