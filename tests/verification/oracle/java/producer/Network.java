package org.apache.kafka.clients;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;

import highwater.Clock;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** Connections to two brokers, which are always there; answers come when they are told to. */
public final class Network implements InvocationHandler {
    private final Clock time;
    private final int most;
    private final Object leastLoaded;
    private final InFlightRequests inFlight;
    private final Supplier<AbstractResponse> producerIds;
    private ClientRequest asksForId;
    private int correlation;
    private final Function<AbstractRequest, List<Integer>> partitions;
    private final Map<Integer, Deque<List<Integer>>> waiting = new TreeMap<>();
    /** To which brokers produce requests were sent since somebody looked, with their partitions. */
    public final Map<Integer, List<Integer>> sent = new TreeMap<>();

    public Network(Clock time, int most, Object leastLoaded, Supplier<AbstractResponse> producerIds,
                   Function<AbstractRequest, List<Integer>> partitions) {
        this.partitions = partitions;
        this.time = time;
        this.most = most;
        this.leastLoaded = leastLoaded;
        this.producerIds = producerIds;
        inFlight = new InFlightRequests(most);
    }

    public KafkaClient client() {
        return (KafkaClient) Proxy.newProxyInstance(Network.class.getClassLoader(), new Class<?>[] {KafkaClient.class}, this);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        switch (method.getName()) {
            case "newClientRequest":
                return Connection.request(arguments, correlation++);
            case "send":
                send((ClientRequest) arguments[0]);
                return null;
            case "poll":
                return poll();
            case "ready":
                return count(((Node) arguments[0]).id()) < most;
            case "isReady":
            case "active":
                return true;
            case "leastLoadedNode":
                return leastLoaded;
            case "connectionDelay":
            case "pollDelayMs":
                return 0L;
            case "connectionFailed":
                return false;
            default:
                return null;
        }
    }

    public int count(int broker) {
        return inFlight.count(String.valueOf(broker));
    }

    private void send(ClientRequest request) {
        if (request.apiKey() == ApiKeys.INIT_PRODUCER_ID) {
            asksForId = request;
            return;
        }
        int broker = Integer.parseInt(request.destination());
        List<Integer> found = new ArrayList<>(partitions.apply(request.requestBuilder().build()));
        Collections.sort(found);
        sent.put(broker, found);
        waiting.computeIfAbsent(broker, ignored -> new ArrayDeque<>()).add(found);
        inFlight.add(Connection.inFlight(request, time.nowMs));
    }

    private List<ClientResponse> poll() {
        if (asksForId == null)
            return Collections.emptyList();
        ClientResponse response = Connection.inFlight(asksForId, time.nowMs).completed(producerIds.get(), time.nowMs);
        asksForId = null;
        response.onComplete();
        return Collections.singletonList(response);
    }

    /** The oldest request to a broker is answered, if there is one. */
    public void answer(int broker, Function<List<Integer>, AbstractResponse> response) {
        if (count(broker) > 0) {
            AbstractResponse answer = response.apply(waiting.get(broker).poll());
            complete(inFlight.completeNext(String.valueOf(broker)).completed(answer, time.nowMs));
        }
    }

    /** The connection to a broker is lost, and there is another one at once. */
    public void lost(int broker) {
        if (waiting.containsKey(broker))
            waiting.get(broker).clear();
        for (NetworkClient.InFlightRequest request : inFlight.clearAll(String.valueOf(broker)))
            complete(Connection.disconnected(request, time.nowMs));
    }

    /** What is thrown ends here, as in NetworkClient.completeResponses. */
    private static void complete(ClientResponse response) {
        try {
            response.onComplete();
        } catch (RuntimeException ignored) { }
    }
}
