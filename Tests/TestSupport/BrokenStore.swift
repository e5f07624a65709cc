package import Moult
import MoultBasics
import MoultFiles
import MoultTrust

/// A store whose `user.db` with 300 notes does not load, because the `-wal` of another database is next to it. The
/// store can be broken again quickly, and digests identify the original files of the user.
package struct BrokenStore {
    package let scratch: Scratch
    package let root: String
    package let store: Store
    /// The digests of the files of the user database, by suffix.
    package let original: [String: String]

    package init(_ manifest: String, _ broken: Broken = .foreignWAL) throws {
        scratch = try Scratch()
        root = scratch.path("store")
        store = Store(at: root)
        try store.updateBlocking(to: manifest)
        try Shell.must([
            "sqlite3", "\(root)/user.db",
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
            INSERT INTO note SELECT i, 'note ' || i FROM n;
            """,
        ])
        try broken.make("user.db", in: root)
        original = try Self.set("\(root)/user.db")
        try scratch.directory("broken")
        for suffix in original.keys {
            try Files.copy("\(root)/user.db\(suffix)", to: scratch.path("broken/user.db\(suffix)"), mode: 0o644)
        }
    }

    /// Restores the broken files, and removes the quarantine.
    package func breakAgain() throws {
        try Files.removeTree("\(root)/.moult/quarantine")
        for suffix in ["", "-wal", "-shm", "-journal"] { try Files.removeTree("\(root)/user.db\(suffix)") }
        for suffix in original.keys {
            try Files.copy(scratch.path("broken/user.db\(suffix)"), to: "\(root)/user.db\(suffix)", mode: 0o644)
        }
    }

    /// Makes the release of the store; returns the path of its manifest.
    package static func release(in directory: String) throws -> String {
        try ReleaseMaker(in: directory).make(
            "1.0.0", sequence: 1,
            [
                .reference("food", "CREATE TABLE food(name); INSERT INTO food VALUES('egg');"),
                .user(
                    "user", "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL); PRAGMA user_version = 3;"),
                .cache(
                    "thumbs",
                    "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB); CREATE INDEX by_image ON thumb(image);"),
            ])
    }

    /// Returns the digests of the files of a database, by suffix, without `-shm`, which has no data.
    package static func set(_ path: String) throws -> [String: String] {
        var set: [String: String] = [:]
        for suffix in ["", "-wal", "-journal"] where try Files.facts(path + suffix)?.kind == .file {
            set[suffix] = try SHA256.digest(ofFileAt: path + suffix).hex
        }
        return set
    }

    /// Returns, for each original file of the user, the directories that contain it: the store, or sets in quarantine.
    package func places() throws -> [String: [String]] {
        let sets = try Files.list("\(root)/.moult/quarantine")
        let directories = [root] + sets.map { "\(root)/.moult/quarantine/\($0)" }
        let found = try directories.map { ($0, try Self.set("\($0)/user.db")) }
        return original.mapValues { digest in found.filter { $0.1.values.contains(digest) }.map(\.0) }
    }

    /// Returns whether the user database is new and can be opened.
    package func isFresh() throws -> Bool {
        let set = try Self.set("\(root)/user.db")
        let ended = try Shell.run(["sqlite3", "file:\(root)/user.db?mode=ro", "SELECT count(*) FROM note"])
        return set.keys.sorted() == [""] && ended.output == "0\n"
    }
}
