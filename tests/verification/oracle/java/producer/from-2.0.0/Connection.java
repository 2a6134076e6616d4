package org.apache.kafka.clients;

import org.apache.kafka.common.requests.AbstractRequest;

/** Requests. */
final class Connection {
    private Connection() { }

    static ClientRequest request(Object[] given, int correlation) {
        return new ClientRequest((String) given[0], (AbstractRequest.Builder<?>) given[1], correlation, "c", (Long) given[2],
            (Boolean) given[3], (Integer) given[4], (RequestCompletionHandler) given[5]);
    }

    static NetworkClient.InFlightRequest inFlight(ClientRequest request, long nowMs) {
        return new NetworkClient.InFlightRequest(
            request, request.makeHeader(request.requestBuilder().latestAllowedVersion()), false, null, null, nowMs);
    }

    static ClientResponse disconnected(NetworkClient.InFlightRequest request, long nowMs) {
        return new ClientResponse(
            request.header, request.callback, request.destination, request.createdTimeMs, nowMs, true, null, null, null);
    }
}
