package highwater;

import java.io.File;
import java.nio.file.Files;

/** Folders of cases. */
public final class Folders {
    private static final File BASE = base();
    private static long count;

    private Folders() { }

    private static File base() {
        try {
            return Files.createTempDirectory("oracle").toFile();
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** One for a log of partition 0. */
    public static File next() {
        File folder = new File(new File(BASE, String.valueOf(count++)), "t-0");
        folder.mkdirs();
        return folder;
    }

    /** Away with it, and with the one that it is in. */
    public static void remove(File folder) {
        delete(folder.getParentFile());
    }

    /** Away with it. */
    static void delete(File file) {
        File[] inside = file.listFiles();
        if (inside != null)
            for (File each : inside)
                delete(each);
        file.delete();
    }
}
