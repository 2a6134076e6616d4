package highwater;

import java.util.Arrays;
import java.util.Locale;

import kafka.server.AbstractFetcherThread;
import kafka.server.FailedPartitions;
import org.apache.kafka.common.TopicPartition;
import scala.collection.immutable.Set.Set1;

/** What is done with a fetcher since partitions fail one by one. */
abstract class Following {
    static final TopicPartition NAME = new TopicPartition("t", 0);

    final FailedPartitions failed = new FailedPartitions();
    AbstractFetcherThread fetcher;

    void leave() {
        fetcher.removePartitions(new Set1<>(NAME));
        failed.removeAll(new Set1<>(NAME));
    }

    void work() {
        fetcher.doWork();
    }

    /** Whether the partition is truncated or fetched, and its leader epoch, while it is followed. */
    Object fetching() {
        var state = fetcher.fetchState(NAME);
        if (state.isEmpty())
            return failed.contains(NAME) ? "failed" : null;
        return Arrays.asList(state.get().state().toString().toLowerCase(Locale.ROOT), state.get().currentLeaderEpoch());
    }
}
