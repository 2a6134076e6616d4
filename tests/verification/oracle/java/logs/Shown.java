package highwater;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What is to be seen of a log of any release. */
final class Shown {
    private Shown() { }

    /** Its batches as `Logs.batches` gives them, but for those below its start. */
    static List<Object> log(long start, long end, Object highWatermark, List<Object> epochs, List<long[]> batches) {
        List<Object> kept = new ArrayList<>();
        for (long[] batch : batches)
            if (batch[3] >= start)
                kept.add(Arrays.stream(batch).skip(2).boxed().toList());
        return Arrays.asList(start, end, highWatermark, epochs, kept);
    }
}
