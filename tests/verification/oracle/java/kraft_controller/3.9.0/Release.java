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
import org.apache.kafka.common.metadata.ClearElrRecord; // from 4.0.0
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.metrics.QuorumControllerMetrics; // from 4.0.0
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/** What differs from release to release. */
final class Release {
    static final String CLUSTER = "cluster";
    static final String ELR_FEATURE = "eligible.leader.replicas.version";
    static final int[] ELR_LEVEL = {}; // before 4.0.0
    static final int[] ELR_LEVEL = {1}; // from 4.0.0

    static FeatureControlManager features(SnapshotRegistry snapshots) {
        return new FeatureControlManager.Builder().setSnapshotRegistry(snapshots)
            .setMetadataVersion(MetadataVersion.latestProduction()) // before 4.0.0
            .setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultFeatureMap(true), List.of(0))) // before 4.0.0
            .setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0))) // from 4.0.0
            .build();
    }

    static ConfigurationControlManager configurations(SnapshotRegistry snapshots, FeatureControlManager features) {
        return new ConfigurationControlManager.Builder().setSnapshotRegistry(snapshots) // before 4.0.0
        return new ConfigurationControlManager.Builder().setSnapshotRegistry(snapshots).setFeatureControl(features) // from 4.0.0
            .setKafkaConfigSchema(kafka.server.KafkaRaftServer$.MODULE$.configSchema()).build();
    }

    static ClusterControlManager cluster(
        SnapshotRegistry snapshots, Time time, long sessionNs, FeatureControlManager features,
        Supplier<ReplicationControlManager> replication
    ) {
        return new ClusterControlManager.Builder().setClusterId(CLUSTER).setTime(time).setSnapshotRegistry(snapshots)
            .setSessionTimeoutNs(sessionNs).setReplicaPlacer(new StripedReplicaPlacer(new Random(0)))
            .setFeatureControlManager(features)
            .setBrokerUncleanShutdownHandler((id, records) -> replication.get().handleBrokerUncleanShutdown(id, records)) // before 4.0.0
            .setMetrics(new QuorumControllerMetrics(Optional.empty(), time, 9_000)) // from 4.0.0
            .setBrokerShutdownHandler((id, clean, records) -> replication.get().handleBrokerShutdown(id, clean, records)) // from 4.0.0
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
        QuorumFeatures.defaultFeatureMap(true).forEach((name, range) -> // before 4.0.0
        QuorumFeatures.defaultSupportedFeatureMap(true).forEach((name, range) -> // from 4.0.0
            features.add(new BrokerRegistrationRequestData.Feature().setName(name).setMinSupportedVersion(range.min())
                .setMaxSupportedVersion(range.max())));
    }

    static List<ApiMessageAndVersion> register(
        ClusterControlManager cluster, BrokerRegistrationRequestData request, long epoch,
        FinalizedControllerFeatures features
    ) {
        return cluster.registerBroker(request, epoch, features).records(); // before 4.0.0
        return cluster.registerBroker(request, epoch, features, true).records(); // from 4.0.0
    }

    static void track(ClusterControlManager cluster, int broker, long epoch) {
        // A heartbeat is noted where it is processed. // before 4.0.0
        cluster.trackBrokerHeartbeat(broker, epoch); // from 4.0.0
    }

    /** Fence one broker; null if there is none. */
    static List<ApiMessageAndVersion> fence(ReplicationControlManager replication) {
        List<ApiMessageAndVersion> records = replication.maybeFenceOneStaleBroker().records(); // before 4.0.0
        return records.isEmpty() ? null : records; // before 4.0.0
        ControllerResult<Boolean> result = replication.maybeFenceOneStaleBroker(); // from 4.0.0
        return result.response() ? result.records() : null; // from 4.0.0
    }

    static ControllerResult<CreateTopicsResponseData> create(
        ReplicationControlManager replication, ControllerRequestContext context, CreateTopicsRequestData request,
        Set<String> describable
    ) {
        return replication.createTopics(context, request, describable); // before 4.3.0
        return replication.createTopics(context, request, describable, false); // from 4.3.0
    }

    static ControllerResult<Map<ConfigResource, ApiError>> configure(
        ConfigurationControlManager configurations, Map<ConfigResource, Map<String, Map.Entry<OpType, String>>> changes
    ) {
        return configurations.incrementalAlterConfigs(changes, false); // before 4.3.0
        return configurations.incrementalAlterConfigs(changes, false, false); // from 4.3.0
    }

    static void replay(ReplicationControlManager replication, ApiMessage record) {
        throw new IllegalStateException("unknown record " + record); // before 4.0.0
        replication.replay((ClearElrRecord) record); // from 4.0.0
    }
}
