package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Broker 2 follows broker 1 with one fetcher for several partitions, in a fetch session. The leaders are Partitions. */
public final class FetcherSubject implements Subject {
    static final int LOCAL = 2;
    private static final int MOST = 3;
    private static final String LOST = "lost";

    /** A request or its answer is lost. */
    static final class Lost extends RuntimeException {
        Lost() {
            super(LOST);
        }
    }

    private final Clock clock = new Clock();
    private final Map<Integer, PartitionSubject.Registration> brokers = new HashMap<>();
    private final List<List<Object>> requests = new ArrayList<>();
    private Release[] leaders;
    private Fetcher fetcher;
    private List<Object> round;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        clock.nowMs = Clock.START_MS;
        brokers.put(LOCAL, new PartitionSubject.Registration("alive", 1));
        int count = MOST;
        for (Object each : operations)
            if (Subject.list(each).get(0).equals("partitions"))
                count = number(Subject.list(each), 1);
        List<File> folders = new ArrayList<>();
        leaders = new Release[count];
        for (int partition = 0; partition < count; partition++) {
            folders.add(Folders.next());
            leaders[partition] = new Release(folders.get(partition), clock, brokers);
        }
        List<File> copies = new ArrayList<>();
        for (int partition = 0; partition < count; partition++)
            copies.add(Folders.next());
        folders.addAll(copies);
        fetcher = new Fetcher(copies, clock, this);
        try {
            List<Object> seen = new ArrayList<>();
            for (Object each : operations) {
                requests.clear();
                act(Subject.list(each));
                seen.add(shown());
            }
            return seen;
        } finally {
            for (Release leader : leaders)
                leader.close();
            fetcher.close();
            folders.forEach(Folders::remove);
        }
    }

    /** The requests, and of each partition its follower and its leader. */
    private List<Object> shown() {
        List<Object> shown = new ArrayList<>();
        shown.add(new ArrayList<>(requests));
        for (int partition = 0; partition < leaders.length; partition++) {
            List<Object> both = fetcher.state(partition);
            both.add(Follower.leading(leaders[partition]));
            shown.add(both);
        }
        return shown;
    }

    private void act(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "partitions":
                return;
            case "elapse":
                fetcher.elapse();
                return;
            case "work":
                work(Subject.list(operation.get(1)));
                return;
            default:
                if (number(operation, 1) < leaders.length)
                    act(operation, number(operation, 1));
        }
    }

    private void act(List<Object> operation, int partition) throws Exception {
        Release leader = leaders[partition];
        switch ((String) operation.get(0)) {
            case "lead":
                leader.lead(number(operation, 2), number(operation, 2),
                    (Boolean) operation.get(3) ? Arrays.asList(1, 2) : Arrays.asList(1), Arrays.asList(1, 2));
                return;
            case "resign":
                leader.follow(2, number(operation, 2), number(operation, 2), Arrays.asList(1, 2));
                return;
            case "append":
                leader.append(number(operation, 2), false);
                return;
            case "relay":
                leader.copy(number(operation, 2), number(operation, 3));
                return;
            case "delete":
                leader.deleteBefore(Subject.offset(operation.get(2)));
                return;
            case "own":
                fetcher.own(partition, number(operation, 2), number(operation, 3));
                return;
            case "hw":
                fetcher.highWatermark(partition, Subject.offset(operation.get(2)));
                return;
            case "follow":
                fetcher.follow(partition, number(operation, 2));
                return;
            case "leave":
                fetcher.leave(partition);
                return;
            case "break":
                fetcher.fail(partition);
                return;
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
    }

    /** Rounds of the fetcher one after the other. */
    private void work(List<Object> rounds) {
        for (Object each : rounds) {
            round = Subject.list(each);
            int before = requests.size();
            fetcher.work();
            requests.subList(before, requests.size()).sort(Comparator.comparing(request ->
                request.get(0).equals("fetch") ? -1 : (Integer) request.get(1)));
        }
    }

    private void meanwhile(int place) {
        try {
            for (Object each : Subject.list(round.get(place)))
                act(Subject.list(each));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    /** A fetch of these positions is under way. */
    void asked(List<Object> positions) {
        requests.add(Arrays.asList("fetch", positions));
        meanwhile(0);
        if (round.get(2).equals("request"))
            throw new Lost();
    }

    Object fetch(int partition, long offset, long leaderEpoch, long lastEpoch) {
        return leaders[partition].fetch(LOCAL, 1, offset, leaderEpoch, lastEpoch);
    }

    /** Its answer is under way. */
    void answered() {
        meanwhile(1);
        if (round.get(2).equals("answer"))
            throw new Lost();
    }

    Object latest(int partition, long leaderEpoch) {
        requests.add(Arrays.asList("latest", partition, leaderEpoch));
        return leaders[partition].latest(leaderEpoch, false);
    }

    /** It is refused for what a question for the latest offset is refused for. */
    Object earliest(int partition, long leaderEpoch) {
        requests.add(Arrays.asList("earliest", partition, leaderEpoch));
        Object answer = leaders[partition].latest(leaderEpoch, false);
        return answer instanceof String ? answer : leaders[partition].logStart();
    }

    private static int number(List<Object> operation, int place) {
        return Subject.number(operation.get(place));
    }
}
