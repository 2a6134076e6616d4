package highwater;

import java.util.Optional;

import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.server.ControllerRequestCompletionHandler; // before 4.0.0
import org.apache.kafka.server.NodeToControllerChannelManager; // before 4.0.0
import org.apache.kafka.server.common.ControllerRequestCompletionHandler; // from 4.0.0
import org.apache.kafka.server.common.NodeToControllerChannelManager; // from 4.0.0

/** A channel to the controller that notes what is sent. */
final class Channel implements NodeToControllerChannelManager {
    private final Asked asked;

    Channel(Asked asked) {
        this.asked = asked;
    }

    public void start() { }

    public void shutdown() { }

    public Optional<NodeApiVersions> controllerApiVersions() {
        return Optional.empty();
    }

    public long getTimeoutMs() {
        return 0;
    }

    public void sendRequest(
        AbstractRequest.Builder<? extends AbstractRequest> request, ControllerRequestCompletionHandler handler
    ) {
        asked.send(request, new Asked.Handler() {
            public void complete(ClientResponse response) {
                handler.onComplete(response);
            }

            public void timeOut() {
                handler.onTimeout();
            }
        });
    }
}
