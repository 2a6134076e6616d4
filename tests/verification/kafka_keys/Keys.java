import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Prints the configuration keys of the Kafka release on the class path: scope, key, default, separated by tabs. */
public class Keys {
    public static void main(String[] words) throws Exception {
        print("broker", "broker.id", "kafka.server.KafkaConfig$");
        print("topic", "segment.bytes", "org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig$");
        print("producer", "acks", "org.apache.kafka.clients.producer.ProducerConfig");
        print("consumer", "group.id", "org.apache.kafka.clients.consumer.ConsumerConfig");
    }

    /** Prints the keys of the first of these classes that exists and has a ConfigDef with a given key. */
    private static void print(String scope, String has, String... classes) throws Exception {
        for (String name : classes) {
            Class<?> type;
            try {
                type = Class.forName(name);
            } catch (ClassNotFoundException absent) {
                continue;
            }
            Object object = name.endsWith("$") ? type.getField("MODULE$").get(null) : null;
            for (Object definition : definitions(type, object)) {
                Map<?, ?> keys = (Map<?, ?>) definition.getClass().getMethod("configKeys").invoke(definition);
                if (!keys.containsKey(has))
                    continue;
                for (Map.Entry<?, ?> entry : new TreeMap<Object, Object>(keys).entrySet())
                    System.out.println(scope + "\t" + entry.getKey() + "\t" + value(entry.getValue()));
                return;
            }
        }
        throw new IllegalStateException("no keys of scope " + scope);
    }

    /** The ConfigDefs in fields and results of a class. */
    private static List<Object> definitions(Class<?> type, Object object) throws Exception {
        List<Object> found = new ArrayList<>();
        for (Class<?> at = type; at != null; at = at.getSuperclass())
            for (Field field : at.getDeclaredFields())
                if (field.getType().getName().endsWith("ConfigDef")
                        && (Modifier.isStatic(field.getModifiers()) || object != null)) {
                    field.setAccessible(true);
                    found.add(field.get(object));
                }
        for (Method method : type.getMethods())
            if (method.getParameterCount() == 0 && method.getReturnType().getName().endsWith("ConfigDef")
                    && (Modifier.isStatic(method.getModifiers()) || object != null))
                found.add(method.invoke(object));
        return found;
    }

    /** A key's default as text: null where it has none, or is null. */
    private static String value(Object key) throws Exception {
        Object value = key.getClass().getField("defaultValue").get(key);
        return value == null || value.getClass() == Object.class ? "null" : value.toString().replaceAll("\\s", " ");
    }
}
