import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// The kernel kills the built command at a system call while it changes writable databases.
@Suite(.tags(.thorough, .slow), .serialized) struct WritableKillTests {
    /// The calls that change a disk, and the occurrences of each at which to kill the command; the last occurrences do
    /// not exist.
    static let calls: [(name: String, most: Int)] = [
        ("fsync", 24), ("renameat2", 8), ("unlink", 8), ("unlinkat", 8), ("pwrite64", 12),
    ]

    /// Kills the command at each of the calls; returns how often it was killed before it had completed. The command must make
    /// every one of these calls at least once. `links` adds the calls that make hard links, and `without` leaves calls out.
    private func sweep(
        _ command: [String], links: Bool = false, without: Set<String> = [], prepare: () throws -> String,
        inspect: (String, Comment) throws -> Void
    ) throws -> Int {
        let moult = try BuiltMoult.path()
        var fired: [String: Int] = [:]
        let calls = Self.calls.filter { !without.contains($0.name) } + (links ? [("linkat", 2)] : [])
        for call in calls {
            for number in stride(from: 1, through: call.most, by: 1) {
                let store = try prepare()
                let ended = try Shell.run(
                    [
                        "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call.name)",
                        "-e", "inject=\(call.name):signal=SIGKILL:when=\(number)", moult,
                    ] + command + ["--store", store])
                // The command makes no further call of this name.
                if ended.status == 0 { break }
                fired[call.name, default: 0] += 1
                try inspect(store, Comment("killed at \(call.name) number \(number)"))
            }
        }
        #expect(Set(fired.keys) == Set(calls.map(\.name)))
        return fired.values.reduce(0, +)
    }

    @Test func `a reset that is killed at any point is recovered`() throws {
        let releases = try Scratch()
        let manifest = try BrokenStore.release(in: releases.path)
        var broken = try BrokenStore(manifest)
        var endings: [History.Entry.Outcome: Int] = [:]
        // SQLite itself removes no file: a confined process salvages the rows.
        let fired = try sweep(["reset", "user", "--set-user-data-aside"], links: true, without: ["unlink"]) {
            broken = try BrokenStore(manifest)
            return broken.root
        } inspect: { root, note in
            // No file of the user is lost. After recovery, either all files are as before, or all files are set aside.
            #expect(try broken.places().values.allSatisfy { !$0.isEmpty }, note)
            let orchestrator = try Orchestrator(root: root, steps: .builtIn)
            for result in try orchestrator.recover() { endings[result.ending, default: 0] += 1 }
            let places = Set(try broken.places().values)
            #expect(places.count == 1, note)
            if places != [[root]] {
                #expect(places.first?.count == 1, note)
                #expect(try broken.isFresh(), note)
            }
            #expect(try Files.list("\(root)/.moult/transactions") == [], note)
            // Runs the command again, to its end.
            if try !broken.isFresh() { try broken.store.reset("user", settingUserDataAside: true) }
            #expect(try broken.isFresh(), note)
            let connection = try broken.store.open("user")
            #expect(connection.recovered == nil, note)
            try connection.close()
        }
        #expect(fired >= 20)
        #expect(endings[.cleaned, default: 0] > 0 && endings[.finished, default: 0] > 0)
    }

    @Test func `a replacement of a shared database that is killed at any point is recovered`() throws {
        let releases = try Scratch()
        let maker = try ReleaseMaker(in: releases.path)
        let manifests = try [("1.0.0", "egg"), ("2.0.0", "rice")].enumerated().map { index, release in
            try maker.make(
                release.0, sequence: index + 1,
                [
                    .shared(
                        "pantry",
                        """
                        CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT, mine INTEGER NOT NULL DEFAULT 0);
                        INSERT INTO food(id, name) VALUES(1, '\(release.1)');
                        """,
                        more: [.init("preserve", [["table": "food", "where": "mine = 1"]])])
                ])
        }
        var scratch = try Scratch()
        func names(_ store: String) throws -> String {
            try Shell.must(["sqlite3", "\(store)/pantry.db", "SELECT group_concat(name) FROM food"])
        }
        var endings: [History.Entry.Outcome: Int] = [:]
        let fired = try sweep(["apply", manifests[1]]) {
            scratch = try Scratch()
            let store = scratch.path("store")
            try Store(at: store).updateBlocking(to: manifests[0])
            try Shell.must(["sqlite3", "\(store)/pantry.db", "INSERT INTO food VALUES(100, 'mine', 1)"])
            return store
        } inspect: { store, note in
            // An app opens the database before the recovery. The app finds one release or the other, and the rows that
            // it writes stay.
            #expect(try ["egg,mine\n", "rice,mine\n"].contains(names(store)), note)
            try Shell.must(["sqlite3", "\(store)/pantry.db", "INSERT INTO food VALUES(101, 'later', 1)"])
            let orchestrator = try Orchestrator(root: store, steps: .builtIn)
            for result in try orchestrator.recover() { endings[result.ending, default: 0] += 1 }
            #expect(try ["egg,mine,later\n", "rice,mine,later\n"].contains(names(store)), note)
            _ = try orchestrator.update(ReleaseFile(manifests[1]))
            #expect(try names(store) == "rice,mine,later\n", note)
            #expect(
                try Shell.must(["sqlite3", "\(store)/pantry.db", "PRAGMA integrity_check"]) == "ok\n", note)
            #expect(try Files.list("\(store)/.moult/transactions") == [], note)
        }
        #expect(fired >= 20)
        #expect(endings[.cleaned, default: 0] > 0 && endings[.finished, default: 0] > 0)
    }
}
