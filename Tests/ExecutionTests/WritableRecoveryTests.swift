import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// An update of a writable database stops in the middle, as if the process had crashed there, and an app continues to
/// write before the recovery.
@Suite struct WritableRecoveryTests {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store
    /// The store as it was at the moment of the crash.
    let crashed: String

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: scratch.path("store"))
        crashed = scratch.path("crashed")
    }

    private static let schema = "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT, mine INTEGER NOT NULL DEFAULT 0);"

    private func release(_ version: String, _ sequence: Int, _ rows: String) throws -> String {
        let preserve: JSON = [["table": "food", "where": "mine = 1"]]
        return try maker.make(
            version, sequence: sequence,
            [
                .shared(
                    "pantry", Self.schema + "INSERT INTO food(id, name) VALUES \(rows);",
                    more: [.init("preserve", preserve)]),
                .reference("codes", "CREATE TABLE codes(release); INSERT INTO codes VALUES('\(version)');"),
            ])
    }

    private func sqlite(_ name: String, _ sql: String) throws -> String {
        try Shell.must(["sqlite3", "\(crashed)/\(name).db", sql])
    }

    private func orchestrator() throws -> Orchestrator { try Orchestrator(root: crashed, steps: .builtIn) }

    /// The moments of the crash.
    enum Moment: String, CaseIterable, Sendable {
        case decided, pointed, copied, verified

        func isNow(_ event: Event) -> Bool {
            switch (self, event) {
            case (.decided, .decided): true
            case (.pointed, .done(.apply, let effect)):
                if case .switchCurrent = effect.change { true } else { false }
            case (.copied, .phase(.apply, .attach)): true
            case (.verified, .done(.apply, let effect)):
                if case .prove = effect.change { true } else { false }
            default: false
            }
        }
    }

    /// Installs the second release, and moves the store to `crashed` at a given moment of the update. The update can then no
    /// longer change the store, which stays as a crash at that moment would have left it.
    private func crash(_ moment: Moment, _ second: String) throws {
        let (store, crashed) = (store.directory, crashed)
        let watcher = Watcher(tell: { event in
            guard moment.isNow(event) else { return }
            #expect(throws: Never.self) { try Files.rename(store, to: crashed) }
            PinnedDirectory.forget("\(store)/.moult")
        })
        let error = #expect(throws: MoultError.self) {
            try Orchestrator(root: store, steps: .builtIn, watcher: watcher).update(ReleaseFile(second))
        }
        #expect(error?.outcome == .stuck)
        try #require(try Files.facts(store) == nil)
    }

    @Test(arguments: Moment.allCases)
    func `recovery completes the update of a shared database`(moment: Moment) throws {
        for mode in ["delete", "wal"] {
            let note = Comment("\(moment), \(mode)")
            let round = try WritableRecoveryTests()
            try round.store.updateBlocking(to: round.release("1.0.0", 1, "(1, 'egg'), (2, 'milk')"))
            try Shell.must([
                "sqlite3", "\(round.store.directory)/pantry.db",
                "PRAGMA journal_mode = \(mode); INSERT INTO food VALUES(100, 'before', 1)",
            ])
            try round.crash(moment, round.release("2.0.0", 2, "(1, 'egg'), (3, 'rice')"))
            // The app does not know about the crash; rows that SQLite has acknowledged must stay.
            _ = try round.sqlite("pantry", "INSERT INTO food VALUES(101, 'after', 1)")
            #expect(try round.orchestrator().isUnfinished(), note)
            #expect(try round.orchestrator().recover().map(\.ending) == [.finished], note)
            let names = try round.sqlite("pantry", "SELECT id, name FROM food ORDER BY id")
            #expect(names == "1|egg\n3|rice\n100|before\n101|after\n", note)
            #expect(try round.sqlite("pantry", "SELECT release FROM moult_release") == "2.0.0\n", note)
            #expect(try round.sqlite("pantry", "PRAGMA integrity_check") == "ok\n", note)
            #expect(try round.sqlite("codes", "SELECT * FROM codes") == "2.0.0\n", note)
            #expect(try !round.orchestrator().isUnfinished(), note)
            #expect(try Files.list("\(round.crashed)/.moult/transactions") == [], note)
            // A second recovery changes nothing.
            let after = try Tree(round.crashed)
            #expect(try round.orchestrator().recover().isEmpty, note)
            #expect(try Tree(round.crashed) == after, note)
        }
    }

    @Test(arguments: Moment.allCases)
    func `the app's journal mode is restored after a crash`(moment: Moment) throws {
        try store.updateBlocking(to: release("1.0.0", 1, "(1, 'egg'), (2, 'milk')"))
        try Shell.must(["sqlite3", "\(store.directory)/pantry.db", "PRAGMA journal_mode = wal"])
        try crash(moment, release("2.0.0", 2, "(1, 'egg'), (3, 'rice')"))
        #expect(try orchestrator().recover().map(\.ending) == [.finished])
        #expect(try sqlite("pantry", "PRAGMA journal_mode") == "wal\n")
        #expect(try sqlite("pantry", "SELECT id FROM food") == "1\n3\n")
    }

    /// The staged copy has rows that an earlier attempt carried over, and a killed attempt left a journal next to it.
    /// The journal must not be rolled back into a new copy.
    @Test func `a journal that a crash left next to the staged copy is not rolled back`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, "(1, 'egg'), (2, 'milk')"))
        try crash(.decided, release("2.0.0", 2, "(1, 'egg'), (3, 'rice')"))
        let transactions = "\(crashed)/.moult/transactions"
        let id = try #require(try Files.list(transactions).first)
        let staged = "\(transactions)/\(id)/waiting/pantry.db"
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("begin")
            c.executemany("insert into food values(?, ?, 1)", [(i, "carried " + "x" * 300) for i in range(100, 500)])
            c.execute("commit")
            c.execute("pragma cache_size=1"); c.execute("begin immediate")
            c.execute("update food set name = 'torn ' || name"); os._exit(0)
            """, staged,
        ])
        try #require(try Files.facts("\(staged)-journal")?.size ?? 0 > 0)
        #expect(try orchestrator().recover().map(\.ending) == [.finished])
        #expect(try sqlite("pantry", "SELECT id, name FROM food ORDER BY id") == "1|egg\n3|rice\n")
        #expect(try sqlite("pantry", "PRAGMA integrity_check") == "ok\n")
    }

    /// The operator can undo the update until the first commit.
    @Test(arguments: Moment.allCases)
    func `an update is undone on request`(moment: Moment) throws {
        try store.updateBlocking(to: release("1.0.0", 1, "(1, 'egg'), (2, 'milk')"))
        try Shell.must(["sqlite3", "\(store.directory)/pantry.db", "INSERT INTO food VALUES(100, 'before', 1)"])
        try crash(moment, release("2.0.0", 2, "(1, 'egg'), (3, 'rice')"))
        #expect(try orchestrator().recover(back: true).map(\.ending) == [.undone])
        #expect(try sqlite("pantry", "SELECT id, name FROM food ORDER BY id") == "1|egg\n2|milk\n100|before\n")
        #expect(try sqlite("codes", "SELECT * FROM codes") == "1.0.0\n")
        #expect(try !orchestrator().isUnfinished())
    }

    @Test func `an undo after a crash keeps the rows that were written after it`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, "(1, 'egg'), (2, 'milk')"))
        try crash(.copied, release("2.0.0", 2, "(1, 'egg'), (3, 'rice')"))
        _ = try sqlite("pantry", "INSERT INTO food VALUES(101, 'after', 1)")
        #expect(try orchestrator().recover(back: true).map(\.ending) == [.undone])
        #expect(try sqlite("pantry", "SELECT group_concat(name) FROM food") == "egg,milk,after\n")
        #expect(try orchestrator().quarantine().isEmpty)
    }

    @Test func `recovery carries over what a process writes that keeps the file open`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, "(1, 'egg'), (2, 'milk')"))
        try crash(.decided, release("2.0.0", 2, "(1, 'egg'), (3, 'rice')"))
        let ready = scratch.path("ready")
        let app = try Background([
            "python3", "-c",
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("insert into food values(101, 'after', 1)")
            open(sys.argv[2], "w").close()
            while True: time.sleep(1)
            """, "\(crashed)/pantry.db", ready,
        ])
        try app.wait { try Files.facts(ready) != nil }
        defer { app.stop() }
        #expect(try orchestrator().recover().map(\.ending) == [.finished])
        #expect(try sqlite("pantry", "SELECT group_concat(name) FROM food") == "egg,rice,after\n")
    }
}
