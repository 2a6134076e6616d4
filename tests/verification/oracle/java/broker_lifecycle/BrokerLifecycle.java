package highwater;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Supplier;

import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatResponseData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.BrokerRegistrationResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.BrokerHeartbeatResponse;
import org.apache.kafka.common.requests.BrokerRegistrationResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.queue.EventQueue;
import org.apache.kafka.queue.KafkaEventQueue;

/**
 * BrokerLifecycleManager with a clock that stands still and a channel that notes what is sent.
 *
 * The operations are an event of its own queue that is appended again and again, so that all that is due comes first, and
 * one thread does everything.
 */
public final class BrokerLifecycle implements Subject, EventQueue.Event {
    static final int NODE = 1;
    private static final long PREVIOUS_EPOCH = 7;
    private static final long FIRST_EPOCH = 100;

    /** Stands still until it is moved. */
    private static final class Nanos implements Time {
        private long now;

        public long milliseconds() {
            return now / MS;
        }

        public long hiResClockMs() {
            return milliseconds();
        }

        public long nanoseconds() {
            return now;
        }

        public void sleep(long ms) {
            now += ms * MS;
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private static final long MS = 1_000_000;
    private Nanos clock;
    private Asked asked;
    private Release manager;
    private KafkaEventQueue queue;
    private TreeMap<?, ?> deadlines;
    private CountDownLatch ended;
    private List<Object> operations;
    private List<Object> seen;
    private long offset;
    private long registrations;
    private boolean done;
    private boolean settled;
    private long until;
    private int place;

    static Properties properties() {
        Properties properties = new Properties();
        properties.setProperty("process.roles", "broker");
        properties.setProperty("node.id", String.valueOf(NODE));
        properties.setProperty("controller.quorum.voters", "2@localhost:9093");
        properties.setProperty("controller.listener.names", "SSL");
        properties.setProperty("log.dirs", "/nowhere");
        properties.setProperty("broker.heartbeat.interval.ms", "2000");
        properties.setProperty("broker.session.timeout.ms", "9000");
        return properties;
    }

    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        this.operations = operations;
        seen = new ArrayList<>();
        clock = new Nanos();
        asked = new Asked();
        manager = new Release(clock);
        queue = (KafkaEventQueue) read(manager.manager, "eventQueue");
        deadlines = (TreeMap<?, ?>) read(read(queue, "eventHandler"), "deadlineMap");
        ended = new CountDownLatch(1);
        offset = 0;
        registrations = 0;
        settled = false;
        until = clock.now;
        place = -1;
        manager.start(new Channel(asked), () -> offset, PREVIOUS_EPOCH);
        queue.append(this);
        ended.await();
        queue.close();
        if (place < operations.size())
            look();
        while (place < operations.size()) {
            perform(Subject.list(operations.get(place)));
            look();
        }
        return seen;
    }

    /** The next operation, or what is due before. */
    @Override
    public void run() throws Exception {
        if (!settled) { // What is in the queue by now comes first, and may close it.
            settled = true;
            queue.append(this);
            return;
        }
        settled = false;
        Map.Entry<?, ?> first = deadlines.firstEntry();
        long due = first == null ? Long.MAX_VALUE : (Long) first.getKey();
        if (due / MS <= until / MS) { // Of two at one time the later one is due a nanosecond later.
            clock.now = Math.max(clock.now, due);
            queue.append(this);
            return;
        }
        look();
        if (place == operations.size()) {
            ended.countDown();
        } else {
            perform(Subject.list(operations.get(place)));
            queue.append(this);
        }
    }

    /** The queue is closed. */
    @Override
    public void handleException(Throwable problem) {
        if (!(problem instanceof RejectedExecutionException))
            problem.printStackTrace();
        ended.countDown();
    }

    private void look() {
        clock.now = until;
        if (place >= 0)
            seen.add(shown());
        place++;
    }

    /** One operation; `done` is whether there was something to do it to. */
    private void perform(List<Object> operation) {
        done = true;
        switch ((String) operation.get(0)) {
            case "answer":
                done = asked.data != null;
                if (done)
                    answer(operation);
                break;
            case "fail":
                done = asked.data != null;
                if (done)
                    asked.fail((String) operation.get(1));
                break;
            case "ready":
                manager.ready();
                break;
            case "stop":
                manager.stop();
                break;
            case "replay":
                offset += Subject.offset(operation.get(1));
                break;
            case "time":
                until += Subject.offset(operation.get(1)) * MS;
                break;
            default:
                throw new IllegalStateException("unknown operation " + operation);
        }
    }

    private void answer(List<Object> operation) {
        short error = Errors.valueOf((String) operation.get(1)).code();
        if (asked.data instanceof BrokerRegistrationRequestData) {
            BrokerRegistrationResponseData data = new BrokerRegistrationResponseData().setErrorCode(error);
            if (error == 0)
                data.setBrokerEpoch(FIRST_EPOCH + registrations++);
            asked.answer(new BrokerRegistrationResponse(data));
        } else {
            asked.answer(new BrokerHeartbeatResponse(new BrokerHeartbeatResponseData().setErrorCode(error)
                .setIsCaughtUp(is(operation, 2)).setIsFenced(is(operation, 3)).setShouldShutDown(is(operation, 4))));
        }
    }

    private static boolean is(List<Object> operation, int place) {
        return Subject.number(operation.get(place)) != 0;
    }

    private static Object read(Object object, String name) throws Exception {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    /** Whether there was something to do, the state, which futures are done, and what was sent and when. */
    private List<Object> shown() {
        List<Object> sent = new ArrayList<>();
        for (ApiMessage data : asked.sent)
            sent.add(shown(data));
        asked.sent.clear();
        return Arrays.asList(done, manager.state(), isDone(manager.caughtUp()), isDone(manager.unfenced()),
            isDone(manager.stopped()), clock.milliseconds(), sent);
    }

    private static boolean isDone(CompletableFuture<Void> future) {
        return future.isDone() && !future.isCompletedExceptionally();
    }

    private static List<Object> shown(ApiMessage data) {
        if (data instanceof BrokerRegistrationRequestData)
            return Arrays.asList("register", ((BrokerRegistrationRequestData) data).previousBrokerEpoch());
        BrokerHeartbeatRequestData heartbeat = (BrokerHeartbeatRequestData) data;
        return Arrays.asList("heartbeat", heartbeat.brokerEpoch(), heartbeat.currentMetadataOffset(),
            heartbeat.wantFence(), heartbeat.wantShutDown());
    }
}
