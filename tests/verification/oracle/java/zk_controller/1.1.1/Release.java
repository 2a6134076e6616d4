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

/** A controller of 1.1 to 2.8. */
final class Release {
    private static final int ROUNDS = 4;

    private final KafkaZkClient zookeeper;
    private final KafkaController controller;
    private CountDownLatch blocked;

    Release(String connect, Properties config) {
        zookeeper = KafkaZkClient.apply(connect, false, 60_000, 60_000, 10, Time.SYSTEM, "oracle", "Session"); // before 2.6.0
        zookeeper = KafkaZkClient.apply(connect, false, 60_000, 60_000, 10, Time.SYSTEM, "oracle", "Session", // from 2.6.0
            Option.empty(), Option.empty()); // from 2.6.0
        zookeeper.createTopLevelPaths();
        controller = new KafkaController(KafkaConfig.fromProps(config), zookeeper, Time.SYSTEM, new Metrics(), null, null, // before 2.6.0
            Option.empty()); // before 2.6.0
        controller = new KafkaController(KafkaConfig.fromProps(config), zookeeper, Time.SYSTEM, new Metrics(), null, 1, // from 2.6.0
            null, Option.empty()); // from 2.6.0
        controller.startup();
    }

    private static class Event implements ControllerEvent { // before 2.6.0
        private final long enqueueTimeMs = 0; // before 2.6.0
    private static final class Event extends MockEvent { // from 2.6.0
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch may;

        Event(CountDownLatch may) { this.may = may; } // before 2.6.0
        Event(CountDownLatch may) { // from 2.6.0
            super(ControllerState.BrokerChange$.MODULE$); // from 2.6.0
            this.may = may; // from 2.6.0
        } // from 2.6.0

        public long enqueueTimeMs() { return enqueueTimeMs; } // before 2.6.0

        public void kafka$controller$ControllerEvent$_setter_$enqueueTimeMs_$eq(long time) { } // before 2.6.0

        public ControllerState state() { return ControllerState.BrokerChange$.MODULE$; } // before 2.6.0

        @Override // from 2.6.0
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
        controller.controlledShutdown(broker, new AbstractFunction1() { // before 2.6.0
        controller.controlledShutdown(broker, Long.MAX_VALUE, new AbstractFunction1() { // from 2.6.0
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
