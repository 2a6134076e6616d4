package highwater;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Reads cases, one a line, and answers each with one line; the argument names the subject's class. */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err); // Whoever logs to stdout would garble the answers.
        Subject subject = (Subject) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            if (line.isEmpty()) { // The end of a batch.
                answers.flush();
                continue;
            }
            Object answer;
            try {
                answer = subject.run(Subject.list(Json.read(line)));
            } catch (Throwable problem) {
                problem.printStackTrace();
                answer = "harness: " + problem;
            }
            answers.append(Json.write(answer)).append('\n');
        }
        answers.flush();
        System.exit(0);
    }
}
