package org.apache.kafka.controller;

import java.util.function.IntPredicate;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.MetadataVersion;

/** How a builder is made, and told of the ELR. */
final class Builders {
    static PartitionChangeBuilder make(PartitionRegistration state, IntPredicate acceptable, int minIsr, boolean elr) {
        return new PartitionChangeBuilder(state, new Uuid(1, 1), 0, acceptable, MetadataVersion.latestProduction(), minIsr) // before 4.3.0
            .setEligibleLeaderReplicasEnabled(elr); // before 4.3.0
        return new PartitionChangeBuilder(state, new Uuid(1, 1), 0, acceptable, MetadataVersion.latestProduction(), minIsr, elr); // from 4.3.0
    }
}
