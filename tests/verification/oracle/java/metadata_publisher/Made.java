package highwater;

import java.lang.reflect.Field;
import java.lang.reflect.Proxy;

/** Objects that a broker needs, and of which nothing is asked here. */
final class Made {
    private Made() { }

    /** An object whose constructor was not called. */
    static <T> T without(Class<T> type) {
        try {
            Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            unsafe.setAccessible(true);
            return type.cast(((sun.misc.Unsafe) unsafe.get(null)).allocateInstance(type));
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** An object that answers nothing. */
    static <T> T answering(Class<T> type) {
        Class<?>[] types = {type};
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), types, (proxy, method, given) -> null));
    }

    static <T> T of(Class<T> type) {
        return type.isInterface() ? answering(type) : without(type);
    }
}
