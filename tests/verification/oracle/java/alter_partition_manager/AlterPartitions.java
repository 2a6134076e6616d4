package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ScheduledFuture;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.server.util.Scheduler;

/** DefaultAlterPartitionManager with a channel that notes what is sent, and a scheduler whose time is the cases'. */
public final class AlterPartitions implements Subject {
    static final Uuid TOPIC = new Uuid(7, 7);
    static final int LEADER = 1;

    /** Runs what is due when it is told to; nothing is periodic. */
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
    private Release manager;
    private long brokerEpoch;
    private List<List<Object>> outcomes;
    private Map<Integer, List<Object>> next;

    @Override
    public List<Object> run(List<Object> operations) {
        clock = new Clock();
        due = new Due();
        asked = new Asked();
        brokerEpoch = 0;
        outcomes = new ArrayList<>();
        next = new HashMap<>();
        manager = new Release(this, new Channel(asked), due, clock, () -> brokerEpoch);
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            perform(Subject.list(each));
            seen.add(shown());
        }
        return seen;
    }

    private void perform(List<Object> operation) {
        switch ((String) operation.get(0)) {
            case "submit":
                submit(operation);
                break;
            case "then":
                next.put(Subject.number(operation.get(1)), operation);
                break;
            case "answer":
                if (asked.data != null)
                    answer((String) operation.get(1), Subject.list(operation.get(2)));
                break;
            case "fail":
                if (asked.data != null)
                    asked.fail((String) operation.get(1));
                break;
            case "epoch":
                brokerEpoch++;
                break;
            case "time":
                due.pass(Subject.offset(operation.get(1)));
                break;
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
    }

    private void submit(List<Object> operation) {
        List<BrokerState> isr = new ArrayList<>();
        for (Object member : Subject.list(operation.get(2)))
            isr.add(new BrokerState().setBrokerId(Subject.number(member)).setBrokerEpoch(Subject.offset(member)));
        manager.submit(Subject.number(operation.get(1)), isr, Subject.number(operation.get(3)),
            Subject.number(operation.get(4)));
    }

    /** A change was decided, or refused; another one may follow at once. */
    void ended(int partition, List<Object> how) {
        outcomes.add(Arrays.asList(partition, how));
        List<Object> operation = next.remove(partition);
        if (operation != null)
            submit(operation);
    }

    private void answer(String error, List<Object> results) {
        AlterPartitionResponseData data = new AlterPartitionResponseData().setErrorCode(Errors.valueOf(error).code());
        AlterPartitionResponseData.TopicData topic = new AlterPartitionResponseData.TopicData().setTopicId(TOPIC);
        for (Object each : results) {
            List<Object> result = Subject.list(each);
            List<Integer> isr = new ArrayList<>();
            for (Object member : Subject.list(result.get(2)))
                isr.add(Subject.number(member));
            topic.partitions().add(new AlterPartitionResponseData.PartitionData()
                .setPartitionIndex(Subject.number(result.get(0)))
                .setErrorCode(Errors.valueOf((String) result.get(1)).code()).setIsr(isr).setLeaderId(LEADER)
                .setLeaderEpoch(Subject.number(result.get(3))).setPartitionEpoch(Subject.number(result.get(4))));
        }
        data.topics().add(topic);
        asked.answer(new AlterPartitionResponse(data));
    }

    /** What was sent, which changes ended how, which wait, and the time. */
    private List<Object> shown() {
        List<Object> sent = new ArrayList<>();
        for (ApiMessage data : asked.sent)
            sent.add(shown((AlterPartitionRequestData) data));
        asked.sent.clear();
        outcomes.sort(Comparator.comparing(outcome -> (Integer) outcome.get(0)));
        List<Object> ended = new ArrayList<>(outcomes);
        outcomes.clear();
        return Arrays.asList(sent, ended, new ArrayList<>(new TreeSet<>(manager.pending())),
            clock.nowMs - Clock.START_MS);
    }

    private static List<Object> shown(AlterPartitionRequestData data) {
        List<List<Object>> changes = new ArrayList<>();
        for (AlterPartitionRequestData.TopicData topic : data.topics())
            for (AlterPartitionRequestData.PartitionData change : topic.partitions()) {
                List<Object> isr = new ArrayList<>();
                for (BrokerState member : change.newIsrWithEpochs())
                    isr.add(Arrays.asList(member.brokerId(), member.brokerEpoch()));
                changes.add(Arrays.asList(change.partitionIndex(), isr, change.leaderEpoch(), change.partitionEpoch()));
            }
        changes.sort(Comparator.comparing(change -> (Integer) change.get(0)));
        return Arrays.asList(data.brokerEpoch(), changes);
    }
}
