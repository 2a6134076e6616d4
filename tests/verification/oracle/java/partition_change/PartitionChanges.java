package org.apache.kafka.controller;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import highwater.Subject;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** PartitionChangeBuilder, one change after the other; no leader is 0. */
public final class PartitionChanges implements Subject {
    private PartitionRegistration state;

    @Override
    public List<Object> run(List<Object> operations) {
        state = registration(0, List.of(), List.of(1L, 2L, 3L), List.of(), List.of(), false);
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            String answer = answer(operation);
            seen.add(answer == null ? shown() : answer);
        }
        return seen;
    }

    private String answer(List<Object> operation) {
        String name = (String) operation.get(0);
        if (name.equals("state")) {
            state = registration(Subject.number(operation.get(2)), list(operation, 1), list(operation, 3),
                list(operation, 4), list(operation, 5), Subject.number(operation.get(6)) == 1);
            return null;
        }
        List<Integer> acceptable = numbers(list(operation, 1));
        int minIsr = Subject.number(operation.get(2));
        boolean elr = Subject.number(operation.get(3)) == 1;
        PartitionChangeBuilder builder = Builders.make(state, acceptable::contains, minIsr, elr);
        builder.setDefaultDirProvider(id -> DirectoryId.MIGRATING);
        builder.setElection(PartitionChangeBuilder.Election.valueOf((String) operation.get(4)));
        if (name.equals("change")) {
            if (operation.get(5) != null)
                builder.setTargetIsr(numbers(list(operation, 5)));
            builder.setUncleanShutdownReplicas(numbers(list(operation, 6)));
            if (operation.get(7) != null)
                builder.setTargetLeaderRecoveryState(recovery(Subject.number(operation.get(7)) == 1));
        } else if (name.equals("reassign")) {
            List<Integer> present = boxed(state.replicas);
            PartitionReassignmentReplicas wanted = new PartitionReassignmentReplicas(
                new org.apache.kafka.metadata.placement.PartitionAssignment(present, id -> DirectoryId.MIGRATING),
                new org.apache.kafka.metadata.placement.PartitionAssignment(numbers(list(operation, 5)), id -> DirectoryId.MIGRATING));
            builder.setTargetReplicas(wanted.replicas());
            if (!wanted.adding().isEmpty())
                builder.setTargetAdding(wanted.adding());
            if (!wanted.removing().isEmpty())
                builder.setTargetRemoving(wanted.removing());
        } else {
            PartitionReassignmentRevert revert = new PartitionReassignmentRevert(state);
            if (revert.unclean() && Subject.number(operation.get(5)) == 0)
                return "refused";
            builder.setTargetIsr(revert.isr()).setTargetReplicas(revert.replicas());
            builder.setTargetAdding(List.of()).setTargetRemoving(List.of());
        }
        for (ApiMessageAndVersion record : builder.build().stream().toList())
            state = state.merge((PartitionChangeRecord) record.message());
        return null;
    }

    private static PartitionRegistration registration(
        int leader, List<Object> replicas, List<Object> isr, List<Object> elr, List<Object> known, boolean recovering
    ) {
        int[] ids = replicas.isEmpty() ? new int[] {1, 2, 3} : array(replicas);
        Uuid[] directories = new Uuid[ids.length];
        Arrays.fill(directories, DirectoryId.MIGRATING);
        return new PartitionRegistration.Builder().setReplicas(ids).setDirectories(directories).setIsr(array(isr))
            .setElr(array(elr)).setLastKnownElr(array(known)).setLeader(leader == 0 ? -1 : leader)
            .setRemovingReplicas(new int[0]).setAddingReplicas(new int[0])
            .setLeaderRecoveryState(recovery(recovering)).setLeaderEpoch(0).setPartitionEpoch(0).build();
    }

    private static LeaderRecoveryState recovery(boolean recovering) {
        return recovering ? LeaderRecoveryState.RECOVERING : LeaderRecoveryState.RECOVERED;
    }

    private List<Object> shown() {
        return Arrays.asList(Math.max(state.leader, 0), state.leaderEpoch, boxed(state.isr), sorted(state.elr),
            sorted(state.lastKnownElr), state.partitionEpoch, boxed(state.replicas), boxed(state.addingReplicas),
            boxed(state.removingReplicas), state.leaderRecoveryState == LeaderRecoveryState.RECOVERING);
    }

    private static List<Object> list(List<Object> operation, int place) {
        return Subject.list(operation.get(place));
    }

    private static List<Integer> numbers(List<Object> values) {
        List<Integer> found = new ArrayList<>();
        for (Object value : values)
            found.add(Subject.number(value));
        return found;
    }

    /** Nobody is 0 in cases, and -1 in Kafka. */
    private static int[] array(List<Object> values) {
        return numbers(values).stream().mapToInt(id -> id == 0 ? -1 : id).toArray();
    }

    private static List<Integer> boxed(int[] ids) {
        List<Integer> found = new ArrayList<>();
        for (int id : ids)
            found.add(Math.max(id, 0));
        return found;
    }

    private static List<Integer> sorted(int[] ids) {
        List<Integer> found = boxed(ids);
        found.sort(null);
        return found;
    }
}
