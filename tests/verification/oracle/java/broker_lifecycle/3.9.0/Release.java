package highwater;

import java.lang.reflect.Field; // before 4.0.0
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import kafka.server.BrokerLifecycleManager; // before 4.3.0
import kafka.server.KafkaConfig;
import org.apache.kafka.common.message.BrokerRegistrationRequestData.ListenerCollection;
import org.apache.kafka.common.utils.ExponentialBackoff; // before 4.0.0
import org.apache.kafka.common.utils.Time;
import scala.collection.immutable.Set$; // before 4.3.0
import scala.runtime.BoxedUnit; // before 4.3.0
import org.apache.kafka.server.BrokerLifecycleManager; // from 4.3.0

/** BrokerLifecycleManager, whose back-off has no jitter here. */
final class Release {
    private static final KafkaConfig CONFIG = new KafkaConfig(BrokerLifecycle.properties());
    final BrokerLifecycleManager manager;

    Release(Time time) throws Exception { // before 4.0.0
        manager = new BrokerLifecycleManager(CONFIG, time, "", false, Set$.MODULE$.empty(), () -> BoxedUnit.UNIT); // before 4.0.0
        Field backOff = BrokerLifecycleManager.class.getDeclaredField("resendExponentialBackoff"); // before 4.0.0
        backOff.setAccessible(true); // before 4.0.0
        backOff.set(manager, new ExponentialBackoff(100, 2, CONFIG.brokerSessionTimeoutMs(), 0)); // before 4.0.0
    Release(Time time) { // from 4.0.0
        manager = new BrokerLifecycleManager(CONFIG, time, "", Set$.MODULE$.empty(), () -> BoxedUnit.UNIT); // from 4.0.0 before 4.3.0
        manager = new BrokerLifecycleManager(CONFIG, time, "", Map.of()); // from 4.3.0
    }

    void start(Channel channel, Supplier<Long> offset, long previousEpoch) {
        manager.start(() -> offset.get(), channel, "cluster", new ListenerCollection(), Map.of(), // before 4.3.0
            OptionalLong.of(previousEpoch)); // before 4.3.0
        manager.start(offset, channel, "cluster", new ListenerCollection(), Map.of(), OptionalLong.of(previousEpoch)); // from 4.3.0
    }

    void ready() {
        manager.setReadyToUnfence();
    }

    void stop() {
        manager.beginControlledShutdown();
    }

    String state() {
        return manager.state().name();
    }

    CompletableFuture<Void> caughtUp() {
        return manager.initialCatchUpFuture();
    }

    CompletableFuture<Void> unfenced() {
        return manager.initialUnfenceFuture();
    }

    CompletableFuture<Void> stopped() {
        return manager.controlledShutdownFuture();
    }
}
