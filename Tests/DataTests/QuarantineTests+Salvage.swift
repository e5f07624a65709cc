import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// The content that salvage can read from a database in quarantine.
extension QuarantineTests {
    /// The rows that can be read are the content that an export and a restore of a table use.
    @Test(arguments: ["delete", "wal"])
    func `the readable rows of a damaged set are exported and restored`(mode: String) throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE note(t);")])
        try shop.install("1.0.0")
        try shop.sql(
            "diary.db",
            "PRAGMA journal_mode = \(mode); "
                + "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO note SELECT hex(zeroblob(200)) FROM n"
        )
        try damage(shop.path("diary.db"), at: 40960)
        try shop.must("reset", "diary", "--set-user-data-aside")
        let rows = try salvaged("SELECT count(*) FROM note")
        try #require(Int(rows.dropLast()) ?? 0 > 400)
        let export = try shop.moult("quarantine", "--export", shop.scratch.path("x.db"), "diary")
        #expect(export.status == 0 && export.errors.contains("is damaged"), "\(export)")
        #expect(try Shop.read(shop.scratch.path("x.db"), "SELECT count(*) FROM note") == rows)
        let ended = try shop.moult("quarantine", "--restore", "diary")
        #expect(ended.status == 3, "\(ended)")
        let advice = try #require(ended.errors.split(separator: "table by table: ").last, "\(ended)")
        _ = try Shell.must(["sh", "-ec", "PATH=$1:$PATH; \(advice)", "sh", Files.directory(of: BuiltMoult.path())])
        #expect(try shop.read("diary.db", "SELECT count(*) FROM note") == rows)
    }

    private func damage(_ file: String, at offset: Int) throws {
        try Shell.must([
            "sh", "-ec", "printf '\\377\\377\\377\\377' | dd of=\"$1\" bs=1 seek=$2 conv=notrunc 2>/dev/null", "sh",
            file,
            "\(offset)",
        ])
    }

    /// A row whose parent is missing would be rejected, so the parents come first.
    @Test func `reset --keep-readable puts the readable rows into the new database, and names what is missing`() throws
    {
        try shop.pack(
            "1.0.0",
            [
                .user(
                    """
                    CREATE TABLE a_leaf(id INTEGER PRIMARY KEY, branch REFERENCES z_branch(id), t);
                    CREATE TABLE z_branch(id INTEGER PRIMARY KEY, t);
                    """)
            ])
        try shop.install("1.0.0")
        try shop.sql(
            "diary.db",
            """
            INSERT INTO z_branch VALUES(1, 'oak'), (2, 'ash');
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO a_leaf SELECT i, 1 + i % 2, hex(randomblob(40)) FROM n;
            """)
        try Shell.must([
            "dd", "if=/dev/zero", "of=\(shop.path("diary.db"))", "bs=4096", "seek=20", "count=1", "conv=notrunc",
            "status=none",
        ])
        let ended = try shop.moult("reset", "diary", "--keep-readable", "--json")
        #expect(ended.status == 0, "\(ended)")
        let result = try Shop.last(ended)
        let rows = try Int(shop.read("diary.db", "SELECT count(*) FROM a_leaf").dropLast()) ?? 0
        #expect(rows > 2000 && rows < 3000)
        #expect(try shop.read("diary.db", "SELECT group_concat(t) FROM z_branch") == "oak,ash\n")
        #expect(try shop.read("diary.db", "PRAGMA foreign_key_check") == "")
        let restored = result["restored"]?.array ?? []
        #expect(restored.compactMap { $0["table"]?.string } == ["z_branch", "a_leaf"])
        #expect(restored.last?["carried"]?.integer == Int64(rows))
        let leaf = result["salvage"]?["tables"]?.array?.first { $0["name"]?.string == "a_leaf" }
        #expect(leaf?["whole"]?.bool == false && leaf?["why"]?.string != nil)
    }

    /// Without rows to put back, the reset is complete.
    @Test func `reset --keep-readable of a file without a readable row, and of a cache, is a reset`() throws {
        try shop.pack(
            "1.0.0",
            [.user("CREATE TABLE note(t);"), Shipped(name: "thumbs", kind: "cache", sql: "CREATE TABLE thumb(t);")])
        try shop.install("1.0.0")
        for (name, file) in [("diary", "diary.db"), ("thumbs", "thumbs.db")] {
            try Shell.must(["sh", "-ec", "head -c 8192 /dev/urandom > \"$1\"", "sh", shop.path(file)])
            let ended = try shop.moult("reset", name, "--keep-readable", "--json")
            let result = try Shop.last(ended)
            #expect(ended.status == 0 && result["restored"] == nil && result["failures"] == nil, "\(name): \(ended)")
        }
        #expect(try shop.read("diary.db", "SELECT count(*) FROM note") == "0\n")
    }

    @Test func `reset --keep-readable does not double shipped rows`() throws {
        try shop.pack(
            "1.0.0", [.shared("CREATE TABLE food(id INTEGER PRIMARY KEY, t); INSERT INTO food VALUES(1, 'rye')")])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO food VALUES(100, 'mine')")
        try Shell.must([
            "dd", "if=/dev/zero", "of=\(shop.path("app.db"))", "bs=1", "count=100", "conv=notrunc", "status=none",
        ])
        try shop.must("reset", "app", "--keep-readable")
        #expect(try shop.read("app.db", "SELECT id, t FROM food ORDER BY id") == "1|rye\n100|mine\n")
    }

    /// Resets the database with a sidecar that SQLite would discard. Rows are salvaged only from a file that is set aside; SQLite
    /// copies any other as a whole.
    private func reset() throws -> JSON {
        try shop.addInvalidJournal("diary.db")
        return try Shop.last(shop.moult("reset", "diary", "--set-user-data-aside", "--json"))
    }

    private func salvaged(_ query: String) throws -> String {
        try Shop.read("\(shop.onlyKept("diary").directory)/salvaged.db", query)
    }

    @Test func `salvage copies full-text tables and tables with similar names`() throws {
        try shop.pack(
            "1.0.0",
            [
                .user(
                    """
                    CREATE VIRTUAL TABLE note USING fts5(t); CREATE TABLE note_tags(t); CREATE TABLE note_data_x(t);
                    CREATE TABLE plain(id INTEGER PRIMARY KEY, t);
                    CREATE VIRTUAL TABLE search USING fts5(t, content='plain', content_rowid='id');
                    CREATE VIRTUAL TABLE older USING fts4(t); CREATE VIRTUAL TABLE area USING rtree(id, a, b);
                    """)
            ])
        try shop.install("1.0.0")
        try shop.sql(
            "diary.db",
            """
            INSERT INTO note VALUES('FTSROW'), ('SECOND'); INSERT INTO note_tags VALUES('TAGROW');
            INSERT INTO note_data_x VALUES('XROW'); INSERT INTO plain VALUES(1, 'PLAINROW');
            INSERT INTO older VALUES('OLDROW'); INSERT INTO area VALUES(1, 2, 3);
            INSERT INTO search(search) VALUES('rebuild');
            """)
        let result = try reset()
        #expect(try salvaged("SELECT t FROM note ORDER BY t") == "FTSROW\nSECOND\n")
        #expect(
            try salvaged("SELECT t FROM note_tags; SELECT t FROM note_data_x; SELECT t FROM plain")
                == "TAGROW\nXROW\nPLAINROW\n")
        #expect(try salvaged("SELECT t FROM older; SELECT id, a, b FROM area") == "OLDROW\n1|2.0|3.0\n")
        let tables = (result["salvage"]?["tables"]?.array ?? []).compactMap { $0["name"]?.string }
        for name in ["note", "note_tags", "note_data_x", "plain"] { #expect(tables.contains(name), "\(tables)") }
    }

    @Test func `salvage does not report a table as complete if it could not read all rows`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE plain(t);")])
        try shop.install("1.0.0")
        try shop.sql(
            "diary.db",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
                + "INSERT INTO plain SELECT i || hex(randomblob(40)) FROM n"
        )
        // A page in the middle of the file is damaged.
        try Shell.must([
            "dd", "if=/dev/zero", "of=\(shop.path("diary.db"))", "bs=4096", "seek=20", "count=1", "conv=notrunc",
            "status=none",
        ])
        let result = try reset()
        let rows = try Int(salvaged("SELECT count(*) FROM plain").dropLast()) ?? 0
        #expect(rows > 2000 && rows < 3000)
        #expect(result["salvage"]?["tables"]?.array?.first?["whole"]?.bool == false)
        #expect(result["salvage"]?["rows"]?.integer == Int64(rows))
    }

    @Test(.enabled(if: geteuid() == 0, "only root may mount"), arguments: [3300, 3500, 4000, 4300])
    func `salvage on a full disk can be repeated`(filled: Int) throws {
        let scratch = try Scratch()
        try Shell.must(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", scratch.path])
        defer { _ = try? Shell.must(["umount", scratch.path]) }
        let shop = try Shop(storeIn: scratch.path)
        try shop.pack("1.0.0", [.user("CREATE TABLE plain(t);")])
        try shop.install("1.0.0")
        try shop.sql(
            "diary.db",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) "
                + "INSERT INTO plain SELECT i || hex(randomblob(100)) FROM n"
        )
        try shop.addInvalidJournal("diary.db")
        try Shell.must(["dd", "if=/dev/zero", "of=\(scratch.path("fill"))", "bs=1k", "count=\(filled)", "status=none"])
        let first = try shop.moult("reset", "diary", "--set-user-data-aside", "--json")
        try Files.remove(scratch.path("fill"))
        if first.status == 0 {
            // The report must not look complete, because the operator has to know that more rows can be salvaged.
            let salvage = try Shop.last(first)["salvage"]
            #expect(salvage?["rows"]?.integer == 6000 || salvage?["note"] != nil)
            let again = try shop.moult("reset", "diary", "--salvage-again")
            #expect(again.status == 0, "\(again.errors)")
        } else {
            #expect(try shop.read("diary.db", "SELECT count(*) FROM plain") == "6000\n")
            #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        }
        #expect(
            try Shop.read("\(shop.onlyKept("diary").directory)/salvaged.db", "SELECT count(*) FROM plain") == "6000\n")
        #expect(try shop.onlyKept("diary").sql("diary.db", "SELECT count(*) FROM plain") == "6000\n")
    }

    @Test func `salvage can be repeated`() throws {
        try begin(beforeReset: { try shop.addInvalidJournal("diary.db") })
        let kept = try shop.onlyKept("diary")
        try Files.remove("\(kept.directory)/salvaged.db")
        #expect(try shop.moult("reset", "diary", "--salvage-again").status == 0)
        #expect(try salvaged("SELECT t FROM note") == "DIARY\n")
        // Running salvage once more changes nothing.
        #expect(try shop.moult("reset", "diary", "--salvage-again").status == 0)
        #expect(try salvaged("SELECT t FROM note") == "DIARY\n")
    }
}
