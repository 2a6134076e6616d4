package highwater;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;

import scala.Function0;

/** What logs of any release are opened with. */
final class Opening {
    private Opening() { }

    static Map<String, Object> settings(Map<String, Object> given) {
        Map<String, Object> all = new HashMap<>(given);
        all.putIfAbsent("segment.ms", Long.MAX_VALUE);
        all.putIfAbsent("retention.ms", -1L);
        all.putIfAbsent("file.delete.delay.ms", 0L);
        all.putIfAbsent("segment.index.bytes", 4096);
        return all;
    }

    /** A release's Scheduler, or what it gives: what is to be done once is done at once, the rest never. */
    static <T> T atOnce(Class<T> kind) {
        return kind.cast(Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind}, Opening::answer));
    }

    private static Object answer(Object self, Method method, Object[] arguments) throws Throwable {
        if (method.isDefault())
            return InvocationHandler.invokeDefault(self, method, arguments);
        if (method.getName().equals("schedule") && (Long) arguments[3] <= 0)
            act(arguments[1]);
        Class<?> answer = method.getReturnType();
        if (answer == boolean.class) // It has started; what was scheduled is done.
            return true;
        if (answer == long.class) // schedule$default$3 and 4: without delay, once.
            return 0L;
        return answer == ScheduledFuture.class ? atOnce(ScheduledFuture.class) : null;
    }

    private static void act(Object task) {
        if (task instanceof Runnable)
            ((Runnable) task).run();
        else
            ((Function0<?>) task).apply();
    }
}
