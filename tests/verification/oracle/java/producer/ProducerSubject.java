package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.kafka.clients.producer.internals.Producing;
import org.apache.kafka.clients.producer.internals.Release;

/** Sender with RecordAccumulator and TransactionManager, for one partition. */
public final class ProducerSubject implements Subject {
    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        Producing producer = new Release(false, 5);
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            if (operation.get(0).equals("producer"))
                producer = new Release((Boolean) operation.get(1), Subject.number(operation.get(2)));
            else
                act(producer, operation);
            seen.add(producer.shown());
        }
        return seen;
    }

    private static void act(Producing producer, List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "send":
                producer.add(Subject.number(operation.get(1)));
                break;
            case "run":
                producer.run();
                break;
            case "wait":
                producer.time.nowMs += Subject.number(operation.get(1));
                break;
            case "leader":
                producer.lead(Subject.number(operation.get(1)));
                break;
            case "answer":
                producer.answer(Subject.number(operation.get(1)), (String) operation.get(2), Subject.offset(operation.get(3)));
                break;
            case "lost":
                producer.network.lost(Subject.number(operation.get(1)));
                break;
            default:
                throw new IllegalArgumentException(operation.toString());
        }
    }
}
