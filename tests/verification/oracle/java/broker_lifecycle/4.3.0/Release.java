package highwater;

import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import kafka.server.KafkaConfig;
import org.apache.kafka.common.message.BrokerRegistrationRequestData.ListenerCollection;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.BrokerLifecycleManager;

/** BrokerLifecycleManager of 4.3. */
final class Release {
    private static final KafkaConfig CONFIG = new KafkaConfig(BrokerLifecycle.properties());
    final BrokerLifecycleManager manager;

    Release(Time time) {
        manager = new BrokerLifecycleManager(CONFIG, time, "", Map.of());
    }

    void start(Channel channel, Supplier<Long> offset, long previousEpoch) {
        manager.start(offset, channel, "cluster", new ListenerCollection(), Map.of(), OptionalLong.of(previousEpoch));
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
