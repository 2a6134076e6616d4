package org.apache.kafka.clients.producer.internals;

import java.util.List;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.InitProducerIdResponse;

/** What is the same from 2.6 on. */
abstract class Recent extends Producing {
    Recent(boolean idempotent, int mostInFlight, int partitions) throws Exception {
        super(idempotent, mostInFlight, partitions);
    }

    @Override
    void runOnce() {
        sender.runOnce();
    }

    @Override
    List<ProducerBatch> inFlight(TopicPartition partition) {
        return sender.inFlightBatches(partition);
    }

    @Override
    int nextSequence(TopicPartition partition) {
        return transactions.sequenceNumber(partition);
    }

    @Override
    int lastAcked(TopicPartition partition) {
        return transactions.lastAckedSequence(partition).orElse(-1);
    }

    @Override
    AbstractResponse producerId(long id) {
        return new InitProducerIdResponse(new InitProducerIdResponseData().setProducerId(id).setProducerEpoch((short) 0));
    }
}
