package highwater;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much JSON as the cases need: lists, objects, strings, whole numbers, true, false and null. */
public final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    public static Object read(String text) {
        return new Json(text).value();
    }

    private char next() {
        while (Character.isWhitespace(text.charAt(at)))
            at++;
        return text.charAt(at);
    }

    private Object value() {
        switch (next()) {
            case '[': return list();
            case '{': return object();
            case '"': return string();
            case 't': at += 4; return true;
            case 'f': at += 5; return false;
            case 'n': at += 4; return null;
            default: return number();
        }
    }

    private List<Object> list() {
        List<Object> found = new ArrayList<>();
        at++;
        while (next() != ']') {
            if (next() == ',')
                at++;
            found.add(value());
        }
        at++;
        return found;
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        while (next() != '}') {
            if (next() == ',')
                at++;
            next();
            String key = string();
            next();
            at++;
            found.put(key, value());
        }
        at++;
        return found;
    }

    private String string() {
        int end = text.indexOf('"', at + 1);
        String found = text.substring(at + 1, end);
        at = end + 1;
        return found;
    }

    private Long number() {
        int begin = at;
        while (at < text.length() && "-0123456789".indexOf(text.charAt(at)) >= 0)
            at++;
        return Long.valueOf(text.substring(begin, at));
    }

    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Iterable) {
            out.append('[');
            boolean first = true;
            for (Object part : (Iterable<?>) value) {
                if (!first)
                    out.append(',');
                first = false;
                write(part, out);
            }
            out.append(']');
        } else if (value instanceof String) {
            out.append('"').append(((String) value).replace("\\", "/").replace("\"", "'").replace("\n", " ")).append('"');
        } else {
            out.append(value);
        }
    }
}
