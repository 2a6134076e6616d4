package highwater;

import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.clients.consumer.internals.Release;

/** SubscriptionState with OffsetFetcher and Fetcher, for one partition. */
public final class ConsumerPositionSubject implements Subject {
    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        Release consumer = new Release("latest", new Clock());
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            if (operation.get(0).equals("consumer"))
                consumer = new Release((String) operation.get(1), new Clock());
            else
                act(consumer, operation);
            seen.add(consumer.shown());
        }
        return seen;
    }

    private static void act(Release consumer, List<Object> operation) {
        switch ((String) operation.get(0)) {
            case "metadata":
                consumer.metadata(Subject.number(operation.get(1)), Subject.number(operation.get(2)));
                break;
            case "seek":
                consumer.seek(Subject.offset(operation.get(1)), Subject.epoch(Subject.offset(operation.get(2))));
                break;
            case "reset":
                consumer.reset((String) operation.get(1));
                break;
            case "epoch-end":
                consumer.epochEnd((String) operation.get(1), Subject.number(operation.get(2)), Subject.offset(operation.get(3)));
                break;
            case "offset":
                consumer.offset((String) operation.get(1), Subject.offset(operation.get(2)), Subject.number(operation.get(3)));
                break;
            case "fetched":
                long base = consumer.fetchOffset();
                int count = Subject.number(operation.get(2));
                if (base >= 0)
                    consumer.fetched((String) operation.get(1),
                        count == 0 ? null : Batches.batch(base, count, Subject.number(operation.get(3))));
                break;
            case "lost":
                consumer.lost();
                break;
            case "wait":
                consumer.waitFor(Subject.offset(operation.get(1)));
                break;
            default:
                throw new IllegalArgumentException(operation.toString());
        }
    }
}
