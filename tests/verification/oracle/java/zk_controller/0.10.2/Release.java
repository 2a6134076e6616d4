package kafka.controller;

import java.util.Properties;
import java.util.concurrent.CountDownLatch;

import kafka.server.BrokerState;
import kafka.server.KafkaConfig;
import kafka.utils.ZkUtils;
import org.I0Itec.zkclient.Events;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.zookeeper.AsyncCallback;
import scala.Option;

/** A controller of 0.10, whose events are those of its ZooKeeper client. */
final class Release {
    private static final int ROUNDS = 4;

    private final ZkUtils zookeeper;
    private final KafkaController controller;
    private final Events events;
    private CountDownLatch blocked;

    Release(String connect, Properties config) throws Exception {
        zookeeper = ZkUtils.apply(connect, 60_000, 60_000, false);
        zookeeper.setupCommonPaths();
        events = new Events(zookeeper.zkClient());
        controller = new KafkaController(KafkaConfig.fromProps(config), zookeeper, new BrokerState(), Time.SYSTEM,
            new Metrics(), Option.empty());
        controller.startup();
    }

    /** All that ZooKeeper has told by now is in the queue. */
    void told() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        AsyncCallback.StatCallback callback = (code, path, context, stat) -> done.countDown();
        zookeeper.zkConnection().getZookeeper().exists("/controller", false, callback, null);
        done.await();
    }

    /** Wait until all is done that follows from what was changed. */
    void settle() throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            told();
            begin(new CountDownLatch(0));
        }
    }

    private void begin(CountDownLatch may) throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        events.put(() -> {
            begun.countDown();
            try {
                may.await();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        });
        begun.await();
    }

    void block() throws Exception {
        blocked = new CountDownLatch(1);
        begin(blocked);
    }

    void unblock() {
        blocked.countDown();
    }

    Object shutDown(int broker) {
        try {
            return controller.shutdownBroker(broker).size();
        } catch (RuntimeException refused) {
            return Errors.forException(refused).name();
        }
    }

    void stop() {
        controller.shutdown();
        zookeeper.close();
    }
}
