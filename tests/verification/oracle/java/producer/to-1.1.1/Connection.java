package org.apache.kafka.clients;

import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.RequestHeader;

/** Requests, which have no timeout of their own before 2.0. */
final class Connection {
    private Connection() { }

    static ClientRequest request(Object[] given, int correlation) {
        return new ClientRequest((String) given[0], (AbstractRequest.Builder<?>) given[1], correlation, "c", (Long) given[2],
            (Boolean) given[3], (RequestCompletionHandler) given[4]);
    }

    static NetworkClient.InFlightRequest inFlight(ClientRequest request, long nowMs) {
        RequestHeader header = request.makeHeader(request.requestBuilder().latestAllowedVersion());
        return new NetworkClient.InFlightRequest(header, request.createdTimeMs(), request.destination(), request.callback(),
            request.expectResponse(), false, null, null, nowMs);
    }

    static ClientResponse disconnected(NetworkClient.InFlightRequest request, long nowMs) {
        return request.disconnected(nowMs);
    }
}
