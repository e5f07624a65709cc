import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A file that another program puts at the path of a database after a crash is not lost by the recovery.
@Suite(.tags(.slow)) struct NewcomerTests {
    private static let points: [(call: String, number: Int)] = [
        ("renameat2", 2), ("renameat2", 3), ("renameat2", 4), ("renameat2", 5), ("renameat2", 6), ("symlinkat", 1),
        ("symlinkat", 2),
    ]

    /// A shared update carries the old row over, or keeps it in quarantine.
    enum Operation: String, CaseIterable {
        case takeOver, firstReference, firstShared, reset, carried, leftBehind
    }

    /// What happens between the crash and the recovery.
    enum Event: String, CaseIterable { case replaced, replacedInCopy, writtenInCopy, writtenToWAL }

    private let scratch: Scratch
    private let first: String
    private let reference: String
    private let shared: String
    /// Two releases of a shared database that preserve a row, or do not.
    private let updates: [Operation: [String]]

    init() throws {
        scratch = try Scratch()
        let schema = "CREATE TABLE d(t)"
        first = try ReleaseMaker(in: scratch.path("1")).make("1.0.0", sequence: 1, [.user("app", schema)])
        reference = try ReleaseMaker(in: scratch.path("2")).make("2.0.0", sequence: 2, [.reference("app", schema)])
        shared = try ReleaseMaker(in: scratch.path("3")).make("2.0.0", sequence: 2, [.shared("app", schema, more: [])])
        let rule: JSON = [["table": "d", "where": "t = 'OLD'"]]
        updates = try [
            .carried: Self.pair(in: scratch.path("4"), [.init("preserve", rule)]),
            .leftBehind: Self.pair(in: scratch.path("5"), []),
        ]
    }

    private static func pair(in directory: String, _ more: [JSON.Member]) throws -> [String] {
        let maker = try ReleaseMaker(in: directory)
        return try ["1.0.0", "2.0.0"].enumerated().map { index, version in
            let content = "CREATE TABLE d(t); INSERT INTO d VALUES('\(version)')"
            return try maker.make(version, sequence: index + 1, [.shared("app", content, more: more)])
        }
    }

    /// Interrupts an update that would replace a file with a row; nil if it ended before the point.
    private func interrupt(_ operation: Operation, _ point: (String, Int), at path: String) throws -> CopiedStore? {
        let store = CopiedStore(path: path)
        let arguments: [String]
        if let releases = updates[operation] {
            try Shell.must([BuiltMoult.path(), "apply", "-q", "--create", releases[0], "--store", path])
            try Shell.must(["sqlite3", "\(path)/app.db", "INSERT INTO d VALUES('OLD')"])
            arguments = ["apply", releases[1]] + (operation == .carried ? [] : ["--accept-unpreserved"])
        } else if operation == .takeOver || operation == .reset {
            try Shell.must([BuiltMoult.path(), "apply", "-q", "--create", first, "--store", path])
            try Shell.must(["sqlite3", "\(path)/app.db", "INSERT INTO d VALUES('OLD')"])
            arguments =
                operation == .reset
                ? ["reset", "app", "--set-user-data-aside"] : ["apply", reference, "--take-over", "app"]
        } else {
            try Files.makeDirectory(path)
            try Shell.must(["sqlite3", "\(path)/app.db", "CREATE TABLE d(t); INSERT INTO d VALUES('OLD')"])
            arguments = ["apply", "--create", operation == .firstReference ? reference : shared]
        }
        return try store.kill(at: point, arguments) ? store : nil
    }

    @Test(.tags(.thorough), arguments: Operation.allCases, Event.allCases)
    func `a file that another program puts in place before recovery is kept`(operation: Operation, event: Event) throws
    {
        var tried = 0
        for (index, point) in Self.points.enumerated() {
            var path = scratch.path("store-\(index)")
            guard try interrupt(operation, point, at: path) != nil else { continue }
            if event != .replaced {
                try Shell.must(["cp", "-r", path, "\(path)-copy"])
                path += "-copy"
            }
            let place = "\(path)/app.db"
            guard try Files.facts(place)?.kind == .file else { continue }
            tried += 1
            if event == .writtenToWAL {
                // The process ends without closing the database, so the row stays in the WAL.
                let insert = """
                    import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode = WAL')
                    c.execute("INSERT INTO d VALUES('NEWCOMER')"); c.commit(); os._exit(0)
                    """
                try Shell.must(["python3", "-c", insert, place])
            } else if event == .writtenInCopy {
                try Shell.must(["sqlite3", place, "INSERT INTO d VALUES('NEWCOMER')"])
            } else {
                try Shell.must(["sqlite3", "\(place).new", "CREATE TABLE d(t); INSERT INTO d VALUES('NEWCOMER')"])
                // As SQLite requires, the program does not leave the journal of the old file beside the new one.
                try Shell.must(["rm", "-f", "\(place)-journal", "\(place)-wal", "\(place)-shm"])
                try Shell.must(["mv", "\(place).new", place])
            }
            // The staged file may also have the row, but not the release of the old file.
            let hadOld = try holdsOld(path)
            let ended = try CopiedStore(path: path).moult(["recover"])
            let note = Comment("\(operation), \(event), \(point): \(ended)")
            #expect(ended.status == 0, note)
            #expect(try holds("NEWCOMER", path), note)
            // A WAL without its database would be useless.
            #expect(try Files.facts(place)?.kind == .file || Files.facts("\(place)-wal") == nil, note)
            // The newcomer may have replaced the only name of the old file.
            #expect(try !hadOld || holds("OLD", path), note)
            // A crash before the decision leaves nothing installed. After a complete update, the file in place is not from a
            // release.
            guard try Files.facts("\(path)/.moult/current") != nil, updates[operation] == nil else { continue }
            #expect(try CopiedStore(path: path).moult(["verify", "--deep"]).status == 0, note)
        }
        #expect(tried >= 2)
    }

    /// `cp -al` gives both stores the same files.
    @Test(arguments: [Operation.takeOver, .reset])
    func `the set in quarantine does not change with a store that shares the file`(operation: Operation) throws {
        let (store, other) = (CopiedStore(path: scratch.path("store")), scratch.path("other"))
        try Shell.must([BuiltMoult.path(), "apply", "-q", "--create", first, "--store", store.path])
        try Shell.must(["sqlite3", "\(store.path)/app.db", "INSERT INTO d VALUES('OLD')"])
        try Shell.must(["cp", "-al", store.path, other])
        let words =
            operation == .reset
            ? ["reset", "app", "--set-user-data-aside"] : ["apply", reference, "--take-over", "app"]
        // The command in the error gives the database a file of its own.
        let refused = try store.moult(words)
        try #require(refused.status == 3, "\(refused)")
        let command = try #require(refused.errors.firstRange(of: "cp -p "))
        try Shell.must(["sh", "-c", String(refused.errors[command.lowerBound...])])
        let ended = try store.moult(words)
        try #require(ended.status == 0, "\(ended)")
        try Shell.must(["sqlite3", "\(other)/app.db", "DELETE FROM d; VACUUM"])
        #expect(try holds("OLD", "\(store.path)/.moult/quarantine"))
    }

    /// Returns whether the old file is in the store, wherever moult keeps it.
    private func holdsOld(_ store: String) throws -> Bool {
        let files = try Shell.run(["grep", "-rlF", "OLD", "--include=app.db*", "--exclude-dir=transactions", store])
            .output.split(separator: "\n")
        // Files from before moult have no release.
        return try files.contains { try Shell.run(["grep", "-qaF", "2.0.0", String($0)]).status != 0 }
    }

    /// Returns whether a database with this row is in the store, wherever moult keeps it.
    private func holds(_ row: String, _ store: String) throws -> Bool {
        try Shell.run(["grep", "-rqF", row, "--include=app.db*", "--exclude-dir=transactions", store]).status == 0
    }
}
