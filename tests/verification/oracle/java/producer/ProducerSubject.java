package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.kafka.clients.producer.internals.Producing;
import org.apache.kafka.clients.producer.internals.Release;

/** Sender with RecordAccumulator and TransactionManager, for one partition or several. */
public final class ProducerSubject implements Subject {
    @Override
    public List<Object> run(List<Object> operations) throws Exception {
        Producing producer = new Release(false, 5, 1);
        List<Object> seen = new ArrayList<>();
        for (Object each : operations) {
            List<Object> operation = Subject.list(each);
            if (operation.get(0).equals("producer"))
                producer = new Release((Boolean) operation.get(1), Subject.number(operation.get(2)), at(operation, 3, 1));
            else
                act(producer, operation);
            seen.add(producer.shown());
        }
        return seen;
    }

    /** A number of an operation, if it has one there. */
    private static int at(List<Object> operation, int place, int otherwise) {
        return operation.size() > place ? Subject.number(operation.get(place)) : otherwise;
    }

    private static void act(Producing producer, List<Object> operation) throws Exception {
        switch ((String) operation.get(0)) {
            case "send":
                producer.add(Subject.number(operation.get(1)), at(operation, 2, 0));
                break;
            case "run":
                producer.run();
                break;
            case "wait":
                producer.time.nowMs += Subject.number(operation.get(1));
                break;
            case "leader":
                producer.lead(Subject.number(operation.get(1)), at(operation, 2, 0));
                break;
            case "answer":
                producer.answer(Subject.number(operation.get(1)), operation.subList(2, operation.size()));
                break;
            case "lost":
                producer.network.lost(Subject.number(operation.get(1)));
                break;
            default:
                throw new IllegalArgumentException(operation.toString());
        }
    }
}
