package highwater;

import java.util.List;

import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.OffsetAndEpoch;

/** The leader's answers, as Kafka has them. */
final class Answers {
    private Answers() { }

    static FetchResponseData.PartitionData fetched(Object answer) {
        FetchResponseData.PartitionData data = new FetchResponseData.PartitionData();
        if (answer instanceof String)
            return data.setErrorCode(Errors.valueOf((String) answer).code());
        List<Object> read = Subject.list(answer);
        data.setHighWatermark((Long) read.get(0)).setLogStartOffset((Long) read.get(1));
        if (read.get(2) == null)
            return data.setRecords(Batches.records(Subject.list(read.get(3))));
        List<Object> diverging = Subject.list(read.get(2));
        return data.setRecords(Batches.records(List.of())).setDivergingEpoch(new FetchResponseData.EpochEndOffset()
            .setEpoch((Integer) diverging.get(0)).setEndOffset((Long) diverging.get(1)));
    }

    static OffsetAndEpoch offset(Object answer, int leaderEpoch) {
        if (answer instanceof String)
            throw Errors.valueOf((String) answer).exception();
        return new OffsetAndEpoch((Long) answer, leaderEpoch);
    }

    static OffsetForLeaderEpochResponseData.EpochEndOffset epochEnd(Object answer) {
        List<Object> end = Subject.list(answer);
        return new OffsetForLeaderEpochResponseData.EpochEndOffset()
            .setErrorCode(Errors.valueOf((String) end.get(0)).code())
            .setLeaderEpoch((Integer) end.get(1)).setEndOffset((Long) end.get(2));
    }
}
