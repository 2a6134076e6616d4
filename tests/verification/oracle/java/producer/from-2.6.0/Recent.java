package org.apache.kafka.clients.producer.internals;

import java.util.List;

import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.InitProducerIdResponse;

/** What is the same from 2.6 on. */
abstract class Recent extends Producing {
    Recent(boolean idempotent, int mostInFlight) throws Exception {
        super(idempotent, mostInFlight);
    }

    @Override
    void runOnce() {
        sender.runOnce();
    }

    @Override
    List<ProducerBatch> inFlight() {
        return sender.inFlightBatches(PARTITION);
    }

    @Override
    int nextSequence() {
        return transactions.sequenceNumber(PARTITION);
    }

    @Override
    int lastAcked() {
        return transactions.lastAckedSequence(PARTITION).orElse(-1);
    }

    @Override
    AbstractResponse producerId(long id) {
        return new InitProducerIdResponse(new InitProducerIdResponseData().setProducerId(id).setProducerEpoch((short) 0));
    }
}
