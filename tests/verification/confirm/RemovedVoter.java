import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.QuorumInfo;

/**
 * Removes a voter of the metadata quorum: the argument is bootstrap.servers. It prints the leader's id, waits for a line of
 * input with the id of a voter, removes that one, and prints when it is removed.
 */
public class RemovedVoter {
    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
            System.out.println(quorum.leaderId());
            int id = Integer.parseInt(new BufferedReader(new InputStreamReader(System.in)).readLine());
            QuorumInfo.ReplicaState voter =
                quorum.voters().stream().filter(one -> one.replicaId() == id).findFirst().orElseThrow();
            admin.removeRaftVoter(id, voter.replicaDirectoryId()).all().get();
            System.out.println("removed " + System.currentTimeMillis());
        }
    }
}
