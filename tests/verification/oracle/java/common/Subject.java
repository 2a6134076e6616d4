package highwater;

import java.util.List;
import java.util.Optional;

/** A class of Kafka's, driven through the operations of one case. */
public interface Subject {
    /** What is to be seen after each operation, in their order. */
    List<Object> run(List<Object> operations) throws Exception;

    static int number(Object value) {
        return ((Long) value).intValue();
    }

    static long offset(Object value) {
        return (Long) value;
    }

    /** A leader epoch; below 0 there is none. */
    static Optional<Integer> epoch(long value) {
        return value < 0 ? Optional.empty() : Optional.of((int) value);
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return (List<Object>) value;
    }
}
