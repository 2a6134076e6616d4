package highwater;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;

import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.server.util.Scheduler;

/** Partitions on broker 1 whose ISRs one DefaultAlterPartitionManager proposes. */
public final class PartitionsSubject implements Subject {
    private static final int MOST = 3;

    /** Runs what is due when it is told to. */
    private final class Due implements Scheduler {
        private final List<Long> times = new ArrayList<>();
        private final List<Runnable> tasks = new ArrayList<>();

        public void startup() { }

        public void shutdown() { }

        public void resizeThreadPool(int size) { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            times.add(clock.nowMs + delayMs);
            tasks.add(task);
            return null;
        }

        void pass(long ms) {
            long untilMs = clock.nowMs + ms;
            while (!times.isEmpty() && times.get(0) <= untilMs) { // All delays are alike.
                clock.nowMs = times.remove(0);
                tasks.remove(0).run();
            }
            clock.nowMs = untilMs;
        }
    }

    private Clock clock;
    private Due due;
    private Asked asked;
    private long brokerEpoch;
    private Map<Integer, PartitionSubject.Registration> brokers;
    private Release[] partitions;
    private List<List<Long>> waiting;

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        clock = new Clock();
        due = new Due();
        asked = new Asked();
        brokerEpoch = 1;
        brokers = new HashMap<>();
        waiting = new ArrayList<>();
        partitions = new Release[MOST];
        Object manager = Manager.of(new Channel(asked), due, clock, () -> brokerEpoch);
        List<File> folders = new ArrayList<>();
        for (int number = 0; number < MOST; number++) {
            waiting.add(new ArrayList<>());
            folders.add(Folders.next());
            partitions[number] = Manager.partition(folders.get(number), clock, brokers, number, manager);
        }
        try {
            List<Object> seen = new ArrayList<>();
            for (Object each : operations) {
                Object answer = answer(Subject.list(each));
                seen.add(shown(answer));
            }
            return seen;
        } finally {
            for (Release partition : partitions)
                partition.close();
            folders.forEach(Folders::remove);
        }
    }

    private Object answer(List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "wait":
                due.pass(Subject.offset(operation.get(1)));
                return null;
            case "broker":
                brokers.put(number(operation, 1),
                    new PartitionSubject.Registration((String) operation.get(2), Subject.offset(operation.get(3))));
                return null;
            case "epoch":
                brokerEpoch++;
                return null;
            case "answer":
                if (asked.data != null)
                    answer((String) operation.get(1), Subject.list(operation.get(2)));
                return null;
            case "fail":
                if (asked.data != null)
                    asked.fail((String) operation.get(1));
                return null;
            default:
                return answer(operation, number(operation, 1));
        }
    }

    private Object answer(List<Object> operation, int number) throws Exception {
        Release partition = partitions[number];
        switch ((String) operation.get(0)) {
            case "lead":
                partition.lead(number(operation, 2), number(operation, 3), ids(operation.get(4)), ids(operation.get(5)));
                return null;
            case "follow":
                partition.follow(number(operation, 2), number(operation, 3), number(operation, 4), ids(operation.get(5)));
                return null;
            case "append":
                boolean acksAll = (Boolean) operation.get(3);
                String error = partition.append(number(operation, 2), acksAll);
                if (error == null && acksAll)
                    waiting.get(number).add(partition.logEnd());
                return error;
            case "copy":
                return partition.copy(number(operation, 2), number(operation, 3));
            case "fetch":
                return partition.fetch(number(operation, 2), Subject.offset(operation.get(3)),
                    Subject.offset(operation.get(4)), Subject.offset(operation.get(5)), Subject.offset(operation.get(6)));
            case "shrink":
                partition.shrink();
                return null;
            case "min-isr":
                partition.minIsr(number(operation, 2));
                return null;
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
    }

    /** What a request asked for is granted, but for the epochs, or refused with an error, by partition. */
    private void answer(String error, List<Object> results) {
        Map<Integer, List<Integer>> wanted = new HashMap<>();
        for (AlterPartitionRequestData.TopicData topic : ((AlterPartitionRequestData) asked.data).topics())
            for (AlterPartitionRequestData.PartitionData change : topic.partitions()) {
                List<Integer> isr = new ArrayList<>();
                for (BrokerState member : change.newIsrWithEpochs())
                    isr.add(member.brokerId());
                wanted.put(change.partitionIndex(), isr);
            }
        AlterPartitionResponseData data = new AlterPartitionResponseData().setErrorCode(Errors.valueOf(error).code());
        AlterPartitionResponseData.TopicData topic = new AlterPartitionResponseData.TopicData().setTopicId(Release.TOPIC);
        for (Object each : results) {
            List<Object> result = Subject.list(each);
            topic.partitions().add(new AlterPartitionResponseData.PartitionData()
                .setPartitionIndex(number(result, 0)).setErrorCode(Errors.valueOf((String) result.get(1)).code())
                .setIsr(wanted.getOrDefault(number(result, 0), List.of(1))).setLeaderId(1)
                .setLeaderEpoch(number(result, 2)).setPartitionEpoch(number(result, 3)));
        }
        data.topics().add(topic);
        asked.answer(new AlterPartitionResponse(data));
    }

    /** The answer, the requests that were sent, and of each partition the writes that are done and its state. */
    private List<Object> shown(Object answer) {
        List<Object> sent = new ArrayList<>();
        for (ApiMessage data : asked.sent)
            sent.add(shown((AlterPartitionRequestData) data));
        asked.sent.clear();
        List<Object> shown = new ArrayList<>(Arrays.asList(answer, sent));
        for (int number = 0; number < MOST; number++) {
            List<Object> completed = new ArrayList<>();
            Release partition = partitions[number];
            waiting.get(number).removeIf(end -> {
                String outcome = partition.outcome(end);
                if (outcome != null)
                    completed.add(Arrays.asList(end, outcome));
                return outcome != null;
            });
            List<Object> state = new ArrayList<>();
            state.add(completed);
            state.addAll(partition.state());
            shown.add(state);
        }
        return shown;
    }

    private static List<Object> shown(AlterPartitionRequestData data) {
        List<List<Object>> changes = new ArrayList<>();
        for (AlterPartitionRequestData.TopicData topic : data.topics())
            for (AlterPartitionRequestData.PartitionData change : topic.partitions()) {
                List<List<Object>> isr = new ArrayList<>();
                for (BrokerState member : change.newIsrWithEpochs())
                    isr.add(Arrays.asList(member.brokerId(), member.brokerEpoch()));
                isr.sort(Comparator.comparing(member -> (Integer) member.get(0)));
                changes.add(Arrays.asList(change.partitionIndex(), isr, change.leaderEpoch(), change.partitionEpoch()));
            }
        changes.sort(Comparator.comparing(change -> (Integer) change.get(0)));
        return Arrays.asList(data.brokerEpoch(), changes);
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
}
