package kafka.controller;

import java.util.Properties;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;

import kafka.server.KafkaConfig;
import kafka.zk.KafkaZkClient;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import scala.Option;
import scala.collection.immutable.Set;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import scala.util.Try;

/** A controller of 1.1 to 2.1. */
final class Release {
    private static final int ROUNDS = 4;

    private final KafkaZkClient zookeeper;
    private final KafkaController controller;
    private CountDownLatch blocked;

    Release(String connect, Properties config) {
        zookeeper = KafkaZkClient.apply(connect, false, 60_000, 60_000, 10, Time.SYSTEM, "oracle", "Session");
        zookeeper.createTopLevelPaths();
        controller = new KafkaController(KafkaConfig.fromProps(config), zookeeper, Time.SYSTEM, new Metrics(), null, null,
            Option.empty());
        controller.startup();
    }

    private static class Event implements ControllerEvent {
        private final long enqueueTimeMs = 0;
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch may;

        Event(CountDownLatch may) { this.may = may; }

        public long enqueueTimeMs() { return enqueueTimeMs; }

        public void kafka$controller$ControllerEvent$_setter_$enqueueTimeMs_$eq(long time) { }

        public ControllerState state() { return ControllerState.BrokerChange$.MODULE$; }

        public void process() {
            begun.countDown();
            try {
                may.await();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** All that ZooKeeper has told by now is in the queue of the controller. */
    void told() {
        zookeeper.getControllerId();
    }

    /** Wait until all is done that follows from what was changed. */
    void settle() throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            told();
            Event event = new Event(new CountDownLatch(0));
            controller.eventManager().put(event);
            event.begun.await();
        }
    }

    void block() throws Exception {
        blocked = new CountDownLatch(1);
        Event event = new Event(blocked);
        controller.eventManager().put(event);
        event.begun.await();
    }

    void unblock() {
        blocked.countDown();
    }

    Object shutDown(int broker) throws Exception {
        BlockingQueue<Object> answers = new ArrayBlockingQueue<>(1);
        controller.controlledShutdown(broker, new AbstractFunction1() {
            @Override
            public Object apply(Object result) {
                Try<?> outcome = (Try<?>) result;
                answers.add(outcome.isSuccess() ? (Object) count((scala.collection.Set<?>) outcome.get())
                    : Errors.forException(outcome.failed().get()).name());
                return BoxedUnit.UNIT;
            }
        });
        return answers.take();
    }

    private static int count(scala.collection.Iterable<?> values) {
        int count = 0;
        for (scala.collection.Iterator<?> each = values.iterator(); each.hasNext(); each.next())
            count++;
        return count;
    }

    void stop() {
        controller.shutdown();
        zookeeper.close();
    }
}
