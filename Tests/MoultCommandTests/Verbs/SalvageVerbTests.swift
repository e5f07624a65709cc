import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult salvage` reads a damaged file, and writes only the new one.
@Suite struct SalvageVerbTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try scratch.must(
            """
            sqlite3 whole.db "CREATE TABLE note(t); CREATE INDEX n ON note(t);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
                INSERT INTO note SELECT i || hex(zeroblob(40)) FROM n"
            chmod 640 whole.db
            """)
    }

    private func rows(_ file: String) throws -> Int {
        Int(try scratch.must("sqlite3 \(file) 'SELECT count(*) FROM note'").dropLast()) ?? 0
    }

    @Test func `a sound file is copied as a whole`() throws {
        let ended = try scratch.moult("moult salvage whole.db -o new.db")
        #expect(ended.status == 0 && ended.out == "  3000 rows salvaged to new.db\n", "\(ended)")
        #expect(try rows("new.db") == 3000)
        let files = try scratch.must("stat -c %a new.db; ls *.db*")
        #expect(files == "640\nnew.db\nwhole.db\n")
    }

    @Test func `what cannot be read is named, and the damaged file stays as it is`() throws {
        try scratch.must(
            "cp whole.db bad.db; dd if=/dev/zero of=bad.db bs=4096 seek=20 count=1 conv=notrunc status=none; cp bad.db before.db"
        )
        let ended = try scratch.moult("moult salvage bad.db -o new.db --json")
        let json = try JSON(parsing: ended.out, source: "salvage")
        #expect(ended.status == 1 && json["salvage"]?["whole"]?.bool == false, "\(ended)")
        let found = try rows("new.db")
        #expect(found > 2000 && found < 3000 && json["salvage"]?["rows"]?.integer == Int64(found))
        try scratch.must("cmp bad.db before.db")
    }

    /// The rows of the last transactions are only in the WAL.
    @Test func `the WAL of a file is read, too`() throws {
        try scratch.must(
            """
            python3 - <<'E'
            import os, sqlite3
            c = sqlite3.connect("whole.db")
            c.execute("PRAGMA journal_mode = wal")
            c.execute("INSERT INTO note VALUES('in the WAL')")
            c.commit()
            os._exit(0)
            E
            """)
        let before = try scratch.must("sha256sum whole.db whole.db-wal")
        try scratch.mustMoult("moult salvage whole.db -o new.db")
        #expect(try rows("new.db") == 3001)
        #expect(try scratch.must("sha256sum whole.db whole.db-wal") == before)
    }

    @Test func `nothing is overwritten, and a file without rows makes no new file`() throws {
        try scratch.must("echo mine > new.db; head -c 9000 /dev/urandom > noise.db; touch other.db-wal")
        let taken = try scratch.moult("moult salvage whole.db -o new.db")
        #expect(taken.status == 3 && taken.err.contains("new.db exists"), "\(taken)")
        #expect(try scratch.must("cat new.db") == "mine\n")
        let sidecar = try scratch.moult("moult salvage whole.db -o other.db")
        #expect(sidecar.status == 3 && sidecar.err.contains("other.db-wal exists"), "\(sidecar)")
        let noise = try scratch.moult("moult salvage noise.db -o rows.db")
        #expect(noise.status == 1 && noise.out.contains("no rows could be read"), "\(noise)")
        let missing = try scratch.moult("moult salvage missing.db -o rows.db")
        #expect(missing.status == 1 && missing.err.contains("no such file"), "\(missing)")
        #expect(try Files.facts(scratch.path("rows.db")) == nil)
    }
}
