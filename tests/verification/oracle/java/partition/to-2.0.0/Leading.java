package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import kafka.cluster.Partition;
import kafka.cluster.Replica;
import org.apache.kafka.common.protocol.Errors;
import scala.Tuple2;
import scala.collection.JavaConverters;

/** What is to be seen of a Partition up to 2.0, and what it writes to ZooKeeper. */
final class Leading {
    boolean fails;
    private int proposals;
    private List<Object> wanted;

    /** ZooKeeper takes an ISR, or does not: whether it does, and its version then. */
    Tuple2<Object, Object> write(String state, int version) {
        proposals++;
        Map<?, ?> read = (Map<?, ?>) Json.read(state);
        List<Integer> isr = new ArrayList<>();
        for (Object broker : Subject.list(read.get("isr")))
            isr.add(Subject.number(broker));
        wanted = Arrays.asList(PartitionSubject.sorted(isr), read.get("leader_epoch"), version);
        return new Tuple2<>(!fails, fails ? -1 : version + 1);
    }

    static String name(Errors error) {
        return error == Errors.NOT_LEADER_FOR_PARTITION ? "NOT_LEADER_OR_FOLLOWER" : error.name();
    }

    static boolean leads(Partition partition) {
        return partition.leaderReplicaIfLocal().nonEmpty();
    }

    static String outcome(Partition partition, long offset) {
        Tuple2<Object, Errors> outcome = partition.checkEnoughReplicasReachOffset(offset);
        return (Boolean) outcome._1() || outcome._2() != Errors.NONE ? name(outcome._2()) : null;
    }

    List<Object> state(Partition partition, long highWatermark, long logEnd, Clock clock) {
        List<Object> shown = new ArrayList<>();
        shown.addAll(Arrays.asList(leads(partition), partition.getLeaderEpoch(), highWatermark, logEnd, proposals));
        if (!leads(partition))
            return shown;
        Map<Integer, Object> followers = new TreeMap<>();
        for (Replica replica : JavaConverters.setAsJavaSetConverter(partition.assignedReplicas()).asJava()) {
            long known = replica.logEndOffset().messageOffset();
            boolean caughtUp = known == logEnd || clock.nowMs - replica.lastCaughtUpTimeMs() <= PartitionSubject.LAG_MS;
            if (!replica.isLocal())
                followers.put(replica.brokerId(), Arrays.asList(replica.brokerId(), known, caughtUp));
        }
        shown.add(new ArrayList<>(followers.values()));
        List<Integer> isr = new ArrayList<>();
        for (Replica replica : JavaConverters.setAsJavaSetConverter(partition.inSyncReplicas()).asJava())
            isr.add(replica.brokerId());
        shown.add(PartitionSubject.sorted(isr));
        if (wanted != null)
            shown.add(wanted);
        return shown;
    }
}
