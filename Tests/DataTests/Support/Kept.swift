import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The files that the store keeps in addition to the databases in use.
extension Shop {
    /// A database in quarantine, according to its record.
    struct Kept {
        let directory: String
        let record: JSON
        var database: String? { record["database"]?.string }
        var reason: String? { record["reason"]?.string }
        var release: String? { record["release"]?.string }
        var number: Int64 { record["number"]?.integer ?? 0 }
        func rows(_ table: String) -> Int64? { record["rows"]?[table]?.integer }

        /// Runs SQL on a copy of the set, so that the set does not change.
        func sql(_ file: String, _ sql: String) throws -> String {
            let scratch = try Scratch()
            for suffix in ["", "-wal", "-journal"] where try Files.facts("\(directory)/\(file)\(suffix)")?.kind == .file
            {
                try Files.copy("\(directory)/\(file)\(suffix)", to: scratch.path("\(file)\(suffix)"), mode: 0o600)
            }
            try #require(try Files.facts(scratch.path(file)) != nil, "\(directory) does not contain the file \(file)")
            return try Shop.sql(scratch.path(file), sql)
        }
    }

    /// Returns the sets in quarantine, or only those of one database, with the oldest first.
    func kept(_ database: String? = nil) throws -> [Kept] {
        let quarantine = "\(store)/.moult/quarantine"
        guard try Files.facts(quarantine) != nil else { return [] }
        return try Files.list(quarantine).compactMap { name in
            let record = "\(quarantine)/\(name)/set.json"
            guard try Files.facts(record) != nil, let bytes = try Files.read(record, limit: 1 << 20) else { return nil }
            return Kept(directory: "\(quarantine)/\(name)", record: try JSON(parsing: bytes, source: record))
        }
        .filter { database == nil || $0.database == database }.sorted { $0.number < $1.number }
    }

    /// Returns the set of a database in quarantine, which must be the only one.
    func onlyKept(_ database: String) throws -> Kept {
        let all = try kept(database)
        try #require(all.count == 1, "\(all.count) sets of \(database) are in quarantine")
        return try #require(all.first)
    }

    /// Returns the newest set with a file from before moult that was at a path.
    func keptForeign(_ file: String) throws -> Kept {
        let sets = try kept().filter { $0.reason == "foreign" && $0.record["path"]?.string == path(file) }
        return try #require(sets.last, "no file from before moult that was at \(file) is in quarantine")
    }

    /// Runs SQL on a copy of a kept file from before moult.
    func foreign(_ file: String, _ sql: String) throws -> String { try keptForeign(file).sql(file, sql) }

    /// Puts a journal beside a database that SQLite would discard, so that the file is set aside as it is. Every row stays readable.
    func addInvalidJournal(_ name: String) throws {
        try Files.replace(path("\(name)-journal"), with: Array(repeating: UInt8(ascii: "x"), count: 9000))
    }

    /// Returns the databases in the store that contain a text in a value, to show that a row is not lost. Text in freed
    /// pages does not count.
    func databases(with text: String) throws -> [String] {
        try Shell.must(["python3", "-c", Self.search, store, text]).split(separator: "\n").map(String.init)
    }

    private static let search = #"""
        import os, shutil, sqlite3, sys, tempfile
        root, wanted = sys.argv[1], sys.argv[2]
        for directory, _, files in os.walk(root):
            for name in sorted(files):
                path = os.path.join(directory, name)
                if os.path.islink(path) or name.endswith(("-wal", "-shm", "-journal")): continue
                with open(path, "rb") as file:
                    if file.read(16) != b"SQLite format 3\0": continue
                with tempfile.TemporaryDirectory() as copy:
                    for suffix in ("", "-wal", "-journal"):
                        if os.path.exists(path + suffix): shutil.copy(path + suffix, copy + "/db" + suffix)
                    c = sqlite3.connect(copy + "/db")
                    c.text_factory = lambda b: b.decode("utf-8", "replace")
                    for (table,) in c.execute("select name from sqlite_schema where type='table'").fetchall():
                        try: rows = c.execute('select * from "%s"' % table.replace('"', '""')).fetchall()
                        except sqlite3.Error: continue
                        if any(wanted in str(value) for row in rows for value in row):
                            print(os.path.relpath(path, root))
                            break
                    c.close()
        """#

    /// Returns the rows of `moult_rejected`, as `table|row`.
    func rejected(_ name: String) throws -> String {
        guard try sql(name, "SELECT count(*) FROM sqlite_schema WHERE name = 'moult_rejected'") == "1\n" else {
            return ""
        }
        return try sql(name, "SELECT \"table\", row FROM moult_rejected ORDER BY rowid")
    }
}

/// The counts of one table in a plan or a result.
struct Counts: Equatable, CustomStringConvertible {
    var carried = 0
    var rejected = 0
    var kept = 0

    init(carried: Int = 0, rejected: Int = 0, kept: Int = 0) {
        (self.carried, self.rejected, self.kept) = (carried, rejected, kept)
    }

    init(_ row: JSON) {
        func number(_ name: String) -> Int { Int(row[name]?.integer ?? 0) }
        self.init(carried: number("carried"), rejected: number("rejected"), kept: number("kept"))
    }

    var description: String { "\(carried) carried, \(rejected) rejected, \(kept) kept" }

    /// Returns the counts by table of a database in a plan.
    static func inPlan(_ plan: JSON, _ database: String) -> [String: Counts] {
        var counts: [String: Counts] = [:]
        for effect in plan["effects"]?.array ?? [] where effect["database"]?.string == database {
            for row in effect["change"]?["rows"]?.array ?? [] { counts[row["table"]?.string ?? ""] = Counts(row) }
        }
        return counts
    }

    /// Returns the counts by table of a database in the last object of `apply --json` or `rollback --json`.
    static func inResult(_ result: JSON, _ database: String) -> [String: Counts] {
        var counts: [String: Counts] = [:]
        for row in result["rows"]?.array ?? [] where row["database"]?.string == database {
            counts[row["table"]?.string ?? ""] = Counts(row)
        }
        return counts
    }
}
