package highwater;

import java.util.function.Supplier;

import org.apache.kafka.common.utils.Time;

/** Time that only passes when it is told to. */
public final class Clock implements Time {
    public static final long START_MS = 1_000_000_000L;
    public long nowMs = START_MS;

    public long milliseconds() {
        return nowMs;
    }

    public long hiResClockMs() {
        return nowMs;
    }

    public long nanoseconds() {
        return nowMs * 1_000_000;
    }

    public void sleep(long ms) {
        nowMs += ms;
    }

    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException();
    }
}
