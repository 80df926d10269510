import java.security.MessageDigest;
import java.util.Arrays;

/**
 * Tries all passwords of five lower-case letters as servers of the course do: a recursion over the positions, and for
 * each guess a new string, a new digest and a comparison. Prints how many guesses a second, of every pass.
 */
public class BruteForce {
    private final byte[] target;
    private long guesses;

    BruteForce(byte[] target) {
        this.target = target;
    }

    private String search(char[] letters, int position) throws Exception {
        if (position == letters.length) {
            String guess = new String(letters);
            guesses++;
            byte[] digest = MessageDigest.getInstance("SHA-1").digest(guess.getBytes());
            return Arrays.equals(digest, target) ? guess : null;
        }
        for (char letter = 'a'; letter <= 'z'; letter++) {
            letters[position] = letter;
            String found = search(letters, position + 1);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    public static void main(String[] arguments) throws Exception {
        byte[] target = MessageDigest.getInstance("SHA-1").digest("zzzzz".getBytes());
        for (int pass = 0; pass < Integer.parseInt(arguments[0]); pass++) {
            BruteForce search = new BruteForce(target);
            long start = System.nanoTime();
            if (!"zzzzz".equals(search.search(new char[5], 0))) {
                throw new AssertionError("not found");
            }
            System.out.println(search.guesses * 1e9 / (System.nanoTime() - start));
        }
    }
}
