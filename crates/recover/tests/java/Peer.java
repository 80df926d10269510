import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * A client and a server of file recovery with what Java brings along, written from the text of the protocol.
 *
 * <pre>
 * java Peer.java client DIALECT PORT PASSWORD:BYTES …   asks for a file after the other, numbered from 1; a line for each: same, other or nothing
 * java Peer.java server DIALECT WORD …                  prints its port and answers one request, if the password is among the words
 * </pre>
 */
public final class Peer {
    private static final int PIECE = 64;

    public static void main(String[] arguments) throws Exception {
        boolean withId = arguments[1].equals("with-id");
        String[] rest = Arrays.copyOfRange(arguments, 2, arguments.length);
        if (arguments[0].equals("server")) {
            serve(withId, rest);
            return;
        }
        for (int i = 1; i < rest.length; i++) {
            String[] asked = rest[i].split(":");
            System.out.println(ask(withId, Integer.parseInt(rest[0]), i, asked[0], Integer.parseInt(asked[1])));
        }
    }

    private static String ask(boolean withId, int port, int id, String password, int length) throws Exception {
        byte[] plain = new byte[length];
        for (int i = 0; i < length; i++) {
            plain[i] = (byte) (i * 7 + i / 256);
        }
        byte[] encrypted = cipher(Cipher.ENCRYPT_MODE, password).doFinal(plain);
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            if (withId) {
                out.writeInt(id);
            }
            out.write(sha1(password));
            out.writeInt(password.length());
            out.writeLong(encrypted.length);
            writePieces(out, encrypted);
            try {
                if (withId && in.readInt() != id) {
                    return "other";
                }
                byte[] answer = new byte[Math.toIntExact(in.readLong())];
                in.readFully(answer);
                return Arrays.equals(answer, plain) && in.read() == -1 ? "same" : "other";
            } catch (EOFException end) {
                return "nothing";
            }
        }
    }

    private static void serve(boolean withId, String[] words) throws Exception {
        try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            System.out.println(listener.getLocalPort());
            try (Socket socket = listener.accept()) {
                DataInputStream in = new DataInputStream(socket.getInputStream());
                DataOutputStream out = new DataOutputStream(socket.getOutputStream());
                int id = withId ? in.readInt() : 0;
                byte[] digest = new byte[20];
                in.readFully(digest);
                int characters = in.readInt();
                byte[] encrypted = new byte[Math.toIntExact(in.readLong())];
                in.readFully(encrypted);
                for (String word : words) {
                    if (word.length() == characters && Arrays.equals(sha1(word), digest)) {
                        byte[] plain = cipher(Cipher.DECRYPT_MODE, word).doFinal(encrypted);
                        if (withId) {
                            out.writeInt(id);
                        }
                        out.writeLong(plain.length);
                        writePieces(out, plain);
                    }
                }
            }
        }
    }

    private static void writePieces(DataOutputStream out, byte[] bytes) throws IOException {
        for (int at = 0; at < bytes.length; at += PIECE) {
            out.write(bytes, at, Math.min(PIECE, bytes.length - at));
        }
        out.flush();
    }

    private static byte[] sha1(String password) throws Exception {
        return MessageDigest.getInstance("SHA-1").digest(password.getBytes("US-ASCII"));
    }

    private static Cipher cipher(int mode, String password) throws Exception {
        PBEKeySpec spec = new PBEKeySpec(password.toCharArray(), " ".getBytes("US-ASCII"), 65536, 128);
        byte[] key = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA1").generateSecret(spec).getEncoded();
        Cipher cipher = Cipher.getInstance("AES/ECB/PKCS5Padding");
        cipher.init(mode, new SecretKeySpec(key, "AES"));
        return cipher;
    }
}
