package kafka.controller;

import java.util.ArrayList;
import java.util.List;

import highwater.Subject;
import scala.Option;
import scala.collection.immutable.List$;
import scala.collection.immutable.Set;

/** PartitionLeaderElectionAlgorithms of 1.1 and later. */
public final class ZkElection implements Subject {
    private final ControllerContext context = new ControllerContext();

    @Override
    public List<Object> run(List<Object> operations) {
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            Option<Object> leader = leader(Subject.list(each));
            seen.add(leader.isDefined() ? leader.get() : 0);
        }
        return seen;
    }

    private Option<Object> leader(List<Object> operation) {
        scala.collection.immutable.List<Object> assignment = list(operation.get(1));
        scala.collection.immutable.List<Object> isr = list(operation.get(2));
        List<Object> willing = new ArrayList<>(Subject.list(operation.get(3)));
        willing.removeAll(Subject.list(operation.get(4)));
        Set<Object> live = set(willing);
        switch ((String) operation.get(0)) {
            case "offline":
            case "unclean":
                boolean unclean = operation.get(0).equals("unclean");
                return PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection(assignment, isr, live,
                    unclean, context);
            case "preferred":
                return PartitionLeaderElectionAlgorithms.preferredReplicaPartitionLeaderElection(assignment,
                    isr, live);
            case "reassigned":
                return PartitionLeaderElectionAlgorithms.reassignPartitionLeaderElection(assignment, isr, live);
            case "shutdown":
                return PartitionLeaderElectionAlgorithms.controlledShutdownPartitionLeaderElection(assignment,
                    isr, set(operation.get(3)), set(operation.get(4)));
            default: throw new IllegalStateException("unknown operation " + operation);
        }
    }

    private static scala.collection.immutable.List<Object> list(Object values) {
        scala.collection.immutable.List<Object> found = List$.MODULE$.empty();
        List<Object> given = Subject.list(values);
        for (int place = given.size() - 1; place >= 0; place--)
            found = found.$colon$colon((Object) Subject.number(given.get(place)));
        return found;
    }

    private static Set<Object> set(Object values) {
        return list(values).toSet();
    }
}
