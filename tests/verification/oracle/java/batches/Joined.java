package highwater;

import java.nio.ByteBuffer;
import java.util.List;

/** Batches one after the other. */
final class Joined {
    private Joined() { }

    /** Of each its first and last offset and leader epoch. */
    static ByteBuffer batches(List<Object> batches) {
        ByteBuffer all = ByteBuffer.allocate(4096 * (1 + batches.size()));
        for (Object each : batches) {
            long base = Subject.offset(Subject.list(each).get(0)), last = Subject.offset(Subject.list(each).get(1));
            all.put(Batches.batch(base, (int) (last - base + 1), ((Number) Subject.list(each).get(2)).intValue()).buffer());
        }
        all.flip();
        return all;
    }
}
