import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

/** Counts the lines of a file that a pattern is found in, one after the other: prints for each argument behind the file how many and in how many ms. */
public final class Lines {
    public static void main(String[] arguments) throws Exception {
        List<String> lines = Files.readAllLines(Path.of(arguments[0]), StandardCharsets.UTF_8);
        for (int i = 1; i < arguments.length; i++) {
            Pattern pattern = Pattern.compile(arguments[i]);
            long found = 0;
            double least = Double.MAX_VALUE;
            // The first time is that of a machine that has compiled nothing yet.
            for (int round = 0; round < 2; round++) {
                long begun = System.nanoTime();
                found = lines.stream().filter(line -> pattern.matcher(line).find()).count();
                least = Math.min(least, (System.nanoTime() - begun) / 1e6);
            }
            System.out.println(found + " " + least);
        }
    }
}
