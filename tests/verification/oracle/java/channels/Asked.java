package highwater;

import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;

/** What was sent to the controller, and waits for an answer: one request, as the channel has it. */
public final class Asked {
    /** Called with what came of a request. */
    interface Handler {
        void complete(ClientResponse response);

        void timeOut();
    }

    public ApiMessage data;
    public final List<ApiMessage> sent = new ArrayList<>();
    private AbstractRequest request;
    private Handler handler;

    void send(AbstractRequest.Builder<?> builder, Handler handler) {
        if (data != null)
            throw new IllegalStateException("a request is in flight already");
        request = builder.build();
        data = request.data();
        sent.add(data);
        this.handler = handler;
    }

    private Handler taken() {
        data = null;
        return handler;
    }

    public void answer(AbstractResponse body) {
        complete(body, null, null);
    }

    /** It comes to nothing, in one of the ways in which that happens. */
    public void fail(String how) {
        switch (how) {
            case "timeout": taken().timeOut(); break;
            case "empty": complete(null, null, null); break;
            case "version": complete(null, new UnsupportedVersionException(how), null); break;
            case "authentication": complete(null, null, new AuthenticationException(how)); break;
            default: throw new IllegalStateException("unknown failure " + how);
        }
    }

    private void complete(
        AbstractResponse body, UnsupportedVersionException version, AuthenticationException authentication
    ) {
        RequestHeader header = new RequestHeader(request.apiKey(), request.version(), "client", 0);
        taken().complete(new ClientResponse(header, null, "0", 0, 0, false, version, authentication, body));
    }
}
