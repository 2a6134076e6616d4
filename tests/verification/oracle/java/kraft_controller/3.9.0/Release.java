package org.apache.kafka.controller;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.function.Supplier;

import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/** What differs from release to release. */
final class Release {
    static final String CLUSTER = "cluster";
    static final String ELR_FEATURE = "eligible.leader.replicas.version";
    static final int[] ELR_LEVEL = {};

    static FeatureControlManager features(SnapshotRegistry snapshots) {
        return new FeatureControlManager.Builder().setSnapshotRegistry(snapshots)
            .setMetadataVersion(MetadataVersion.latestProduction())
            .setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultFeatureMap(true), List.of(0)))
            .build();
    }

    static ConfigurationControlManager configurations(SnapshotRegistry snapshots, FeatureControlManager features) {
        return new ConfigurationControlManager.Builder().setSnapshotRegistry(snapshots)
            .setKafkaConfigSchema(kafka.server.KafkaRaftServer$.MODULE$.configSchema()).build();
    }

    static ClusterControlManager cluster(
        SnapshotRegistry snapshots, Time time, long sessionNs, FeatureControlManager features,
        Supplier<ReplicationControlManager> replication
    ) {
        return new ClusterControlManager.Builder().setClusterId(CLUSTER).setTime(time).setSnapshotRegistry(snapshots)
            .setSessionTimeoutNs(sessionNs).setReplicaPlacer(new StripedReplicaPlacer(new Random(0)))
            .setFeatureControlManager(features)
            .setBrokerUncleanShutdownHandler((id, records) -> replication.get().handleBrokerUncleanShutdown(id, records))
            .build();
    }

    static ReplicationControlManager replication(
        SnapshotRegistry snapshots, FeatureControlManager features, ConfigurationControlManager configurations,
        ClusterControlManager cluster
    ) {
        return new ReplicationControlManager.Builder().setSnapshotRegistry(snapshots).setFeatureControl(features)
            .setConfigurationControl(configurations).setClusterControl(cluster).build();
    }

    static void addFeatures(BrokerRegistrationRequestData.FeatureCollection features) {
        QuorumFeatures.defaultFeatureMap(true).forEach((name, range) ->
            features.add(new BrokerRegistrationRequestData.Feature().setName(name).setMinSupportedVersion(range.min())
                .setMaxSupportedVersion(range.max())));
    }

    static List<ApiMessageAndVersion> register(
        ClusterControlManager cluster, BrokerRegistrationRequestData request, long epoch,
        FinalizedControllerFeatures features
    ) {
        return cluster.registerBroker(request, epoch, features).records();
    }

    static void track(ClusterControlManager cluster, int broker, long epoch) {
        // A heartbeat is noted where it is processed.
    }

    /** Fence one broker; null if there is none. */
    static List<ApiMessageAndVersion> fence(ReplicationControlManager replication) {
        List<ApiMessageAndVersion> records = replication.maybeFenceOneStaleBroker().records();
        return records.isEmpty() ? null : records;
    }

    static ControllerResult<CreateTopicsResponseData> create(
        ReplicationControlManager replication, ControllerRequestContext context, CreateTopicsRequestData request,
        Set<String> describable
    ) {
        return replication.createTopics(context, request, describable);
    }

    static ControllerResult<Map<ConfigResource, ApiError>> configure(
        ConfigurationControlManager configurations, Map<ConfigResource, Map<String, Map.Entry<OpType, String>>> changes
    ) {
        return configurations.incrementalAlterConfigs(changes, false);
    }

    static void replay(ReplicationControlManager replication, ApiMessage record) {
        throw new IllegalStateException("unknown record " + record);
    }
}
