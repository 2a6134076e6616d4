package highwater;

import org.apache.kafka.common.protocol.Errors;

/** How a release from 1.1 on takes batches, as a leader and as a follower. */
abstract class Appending {
    abstract long start();

    abstract long end();

    abstract void truncateFully(long offset);

    /** Returns the first offset. */
    abstract long append(int count, int epoch, int producer, short producerEpoch, int sequence) throws Exception;

    /** Returns null, or first and last offset if Kafka throws UnexpectedAppendOffsetException. */
    abstract long[] follow(long base, int count, int epoch);

    Object lead(int count, int epoch, int producer, int producerEpoch, int sequence) {
        long end = end();
        try {
            long first = append(count, epoch, producer, (short) producerEpoch, sequence);
            return first == end ? null : first;
        } catch (Exception refused) {
            return Errors.forException(refused).name();
        }
    }

    /** As Partition.appendRecordsToFollowerOrFutureReplica does it. */
    String copy(long base, int count, int epoch) {
        long[] unexpected = follow(base, count, epoch);
        if (unexpected == null)
            return null;
        if (end() != start() || unexpected[0] >= end() || unexpected[1] < end())
            return "refused";
        truncateFully(unexpected[0]);
        if (follow(base, count, epoch) != null)
            throw new IllegalStateException("refused again");
        return null;
    }
}
