import MoultFiles
import TestSupport
import Testing

/// A reset sets a damaged database and its sidecars aside one after the other, so a crash can separate them.
@Suite struct SeparatedSidecarsTests {
    static let points: [(String, Int)] = [
        ("linkat", 1), ("linkat", 2), ("linkat", 3), ("renameat2", 2), ("renameat2", 3), ("renameat2", 4),
    ]

    enum Recovery: String, CaseIterable {
        case finish, undo, finishInCopy, undoInCopy

        var isUndo: Bool { self == .undo || self == .undoInCopy }
        var isCopy: Bool { self == .finishInCopy || self == .undoInCopy }
    }

    private let scratch: Scratch
    private let release: String

    init() throws {
        scratch = try Scratch()
        let releases = try ReleaseMaker(in: scratch.directory("releases"))
        let schema = "CREATE TABLE note(t); CREATE TABLE other(x); PRAGMA user_version = 1;"
        release = try releases.make("1.0.0", sequence: 1, [.user("diary", schema)])
    }

    /// Creates a store whose database has a damaged table, a row MAIN in the main file, and a row INWAL in the WAL.
    private func damagedStore(_ name: String) throws -> CopiedStore {
        let store = CopiedStore(path: scratch.path(name))
        try Shell.must([BuiltMoult.path(), "apply", "-q", "--create", release, "--store", store.path])
        let script = """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.executemany('INSERT INTO other VALUES(?)', [('x' * 900,)] * 300)
            c.execute("INSERT INTO note VALUES('MAIN')"); c.commit(); c.execute('PRAGMA journal_mode = WAL'); c.close()
            c = sqlite3.connect(sys.argv[1]); c.execute("INSERT INTO note VALUES('INWAL')"); c.commit()
            with open(sys.argv[1], 'r+b') as f: f.seek(os.path.getsize(sys.argv[1]) - 20 * 4096); f.write(b'\\xff' * 3 * 4096)
            os._exit(0)
            """
        try Shell.must(["python3", "-c", script, "\(store.path)/diary.db"])
        return store
    }

    /// Returns the notes of each main file in the store that SQLite can open, with its sidecars.
    private func notes(_ store: CopiedStore) throws -> [String] {
        let files = try Shell.run(["find", store.path, "-name", "diary.db", "-o", "-name", "diary.db.[0-9]"]).output
        return try files.split(separator: "\n").map(String.init).flatMap { file in
            let copy = try Scratch()
            for suffix in ["", "-wal", "-journal"] where try Files.facts(file + suffix)?.kind == .file {
                try Files.copy(file + suffix, to: copy.path("db\(suffix)"), mode: 0o600)
            }
            return try Shell.run(["sqlite3", copy.path("db"), "SELECT t FROM note"]).output.split(separator: "\n")
                .map(String.init)
        }
    }

    @Test(arguments: Recovery.allCases)
    func `a sidecar is not joined with a database that was written to without it`(recovery: Recovery) throws {
        var written = 0
        for (index, point) in Self.points.enumerated() {
            var store = try damagedStore("store-\(index)")
            try #require(try store.kill(at: point, "reset", "diary", "--set-user-data-aside"), "\(point)")
            if recovery.isCopy {
                try Shell.must(["cp", "-r", store.path, "\(store.path)-copy"])
                store = CopiedStore(path: "\(store.path)-copy")
            }
            let place = "\(store.path)/diary.db"
            if try Shell.run(["sqlite3", place, "INSERT INTO note VALUES('LATER')"]).status == 0 { written += 1 }
            let seen = try Shell.must(["sqlite3", place, "SELECT t FROM note"]).split(separator: "\n").map(String.init)
            let ended = try store.moult(recovery.isUndo ? ["recover", "--undo"] : ["recover"])
            let note = Comment("\(recovery), \(point): \(ended)")
            #expect(ended.status == 0, note)
            let set = try Files.list("\(store.path)/.moult/quarantine").first { $0.hasSuffix("-diary") }
            let files = try set.map { try Files.list("\(store.path)/.moult/quarantine/\($0)") } ?? []
            if recovery.isUndo, files.contains("diary.db-wal") {
                let kept =
                    files.contains("diary.db") ? "the old database is" : "sidecars that do not belong to the database"
                #expect(ended.output.replacing("\n", with: " ").contains(kept), note)
            }
            #expect(try Set(notes(store)).isSuperset(of: seen), note)
            // The file of the WAL is also kept, or its rows are in a database.
            #expect(try Shell.run(["grep", "-rqaF", "INWAL", store.path]).status == 0, note)
        }
        #expect(written == Self.points.count)
    }
}
