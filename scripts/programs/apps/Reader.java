import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.sql.*;

/** Reads a store of moult: takes a lease, opens the files of one release, and opens them again after each update. */
class Reader {
    static Path store;

    static Path current() throws Exception { return store.resolve(".moult").resolve(Files.readSymbolicLink(store.resolve(".moult/current"))); }

    /** Keeps the installed release in place until the channel is closed: the shared lock is a read lock on the lease file. */
    static FileChannel lease() throws Exception {
        for (;;) {
            Path release = current();
            FileChannel held = FileChannel.open(store.resolve(".moult/leases").resolve(release.getFileName()), LinkOption.NOFOLLOW_LINKS, StandardOpenOption.READ);
            if (held.tryLock(0, Long.MAX_VALUE, true) != null && current().equals(release)) return held;
            held.close();
        }
    }

    static String text(Connection database, String sql) throws Exception {
        try (Statement statement = database.createStatement(); ResultSet row = statement.executeQuery(sql)) { return row.getString(1); }
    }

    public static void main(String[] words) throws Exception {
        store = Path.of(words[0]);
        Path directory = Path.of(words[1]), stop = directory.resolve("stop"), announced = store.resolve(".moult/announced");
        Connection prices = DriverManager.getConnection("jdbc:sqlite:file:" + store.toUri().getRawPath() + "/prices.db?busy_timeout=60000");
        while (!Files.exists(stop)) {
            try (FileChannel held = lease()) {
                String seen = Files.readString(announced), view;
                // The path is escaped, and the driver passes the URI to SQLite.
                String food = "jdbc:sqlite:file:" + current().toUri().getRawPath() + "/food.db?mode=ro&immutable=1";
                try (Connection release = DriverManager.getConnection(food)) { view = text(release, "SELECT group_concat(DISTINCT release) FROM food"); }
                view += " " + text(prices, "SELECT group_concat(DISTINCT cents) FROM price WHERE own = 0");
                Files.writeString(directory.resolve("java.new"), view);
                Files.move(directory.resolve("java.new"), directory.resolve("java.view"), StandardCopyOption.ATOMIC_MOVE);
                while (Files.readString(announced).equals(seen) && !Files.exists(stop)) Thread.sleep(5);
            }
        }
    }
}
