import Moult
import MoultBasics
import MoultFiles
import TestSupport

/// A flow during which the power fails: the steps that lead to its beginning, and the command.
enum Flow: String, CaseIterable {
    case install, update, rollback, rewrite, rewriteInWALMode, migration, reset, consumer,
        settling

    /// The releases for all flows. Each flow has its own new store.
    struct Releases {
        let first: String
        let second: String
        let product: String

        init(_ flow: Flow, in directory: String) throws {
            let maker = try ReleaseMaker(in: directory)
            product = maker.product
            (first, second) = try (flow.release(maker, 1), flow.release(maker, 2))
        }
    }

    private var mode: String { rawValue.hasSuffix("WALMode") ? "wal" : "delete" }
    private var isRewrite: Bool { rawValue.hasPrefix("rewrite") }
    /// Whether the databases can be read before the flow begins.
    var isReadable: Bool { self != .reset }

    private func release(_ maker: ReleaseMaker, _ number: Int) throws -> String {
        // Large enough for several pages, so that only some of them may be lost.
        let food = """
            CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT, mine INTEGER NOT NULL DEFAULT 0);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
            INSERT INTO food(name) SELECT 'release \(number), ' || hex(zeroblob(300)) FROM n;
            """
        var sources: [ReleaseMaker.Source] = [
            .reference("food", food),
            .reference("codes", "CREATE TABLE codes(release); INSERT INTO codes VALUES(\(number));"),
        ]
        if isRewrite {
            let preserve: JSON = [["table": "food", "where": "mine = 1"]]
            sources.append(.shared("pantry", food, more: [.init("preserve", preserve)]))
        }
        let isMigrated = self == .migration && number == 2
        sources.append(
            .user(
                "user",
                "CREATE TABLE note(text TEXT\(isMigrated ? ", done INTEGER" : "")); PRAGMA user_version = \(isMigrated ? 2 : 1);",
                migrations: isMigrated
                    ? ["m/0002.sql": "ALTER TABLE note ADD COLUMN done INTEGER; PRAGMA user_version = 2;"] : [:]))
        return try maker.make("\(number).0.0", sequence: number, sources)
    }

    /// Brings a store to the beginning of the flow.
    func begin(_ store: String, _ releases: Releases, _ moult: String) throws {
        try Orchestrator.create(at: store, Settings(product: releases.product))
        if self == .install { return }
        try Store(at: store).updateBlocking(to: releases.first)
        try write("user", "INSERT INTO note(text) VALUES('mine')", store)
        if isRewrite { try write("pantry", "INSERT INTO food VALUES(100, 'mine', 1)", store) }
        switch self {
        case .rollback: try Store(at: store).updateBlocking(to: releases.second)
        case .reset: try breakUser(store)
        case .consumer:
            try Settings.rewrite(
                StoreLayout(root: store), "consumers",
                [["name": "app", "command": ["release": ["true"], "reload": ["true"]]]])
        case .settling:
            // The command is killed just before it switches the pointer.
            let ended = try Shell.run(
                [
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=symlinkat", "-e",
                    "inject=symlinkat:signal=SIGKILL:when=1",
                ]
                    + [moult] + apply(store, releases))
            guard ended.status != 0, try Orchestrator(root: store, steps: .builtIn).isUnfinished() else {
                throw Disk.wrong("the update was not interrupted: \(ended)")
            }
        default: break
        }
    }

    private func write(_ name: String, _ sql: String, _ store: String) throws {
        try Shell.must(["sqlite3", "\(store)/\(name).db", "PRAGMA journal_mode = \(mode); \(sql)"])
    }

    /// Breaks the user database: SQLite cannot open it, and its `-wal` must not be lost.
    private func breakUser(_ store: String) throws {
        for (suffix, content) in [("", "not a database, "), ("-wal", "what somebody else left")] {
            try Files.remove("\(store)/user.db\(suffix)")
            try Files.writeNew(Array(String(repeating: content, count: 400).utf8), to: "\(store)/user.db\(suffix)")
        }
    }

    private func apply(_ store: String, _ releases: Releases) -> [String] {
        ["apply", self == .install ? releases.first : releases.second, "--store", store, "-q"]
    }

    /// Returns the arguments with which `moult` runs the flow.
    func command(_ store: String, _ releases: Releases) -> [String] {
        switch self {
        case .rollback: ["rollback", "--reason", "model", "--store", store, "-q"]
        case .reset: ["reset", "user", "--set-user-data-aside", "--store", store, "-q"]
        case .settling: ["recover", "--store", store, "-q"]
        default: apply(store, releases)
        }
    }

    /// Completes the flow after an interruption.
    func again(_ store: String, _ releases: Releases) throws {
        let orchestrator = try Orchestrator(root: store, steps: .builtIn)
        switch self {
        case .rollback:
            // Goes back to the beginning of the flow, and then to its end.
            _ = try orchestrator.unholdAll()
            _ = try orchestrator.update(ReleaseFile(releases.second))
            _ = try orchestrator.rollback(to: nil, reason: "model")
        case .reset: break
        case .install: _ = try orchestrator.update(ReleaseFile(releases.first))
        default: _ = try orchestrator.update(ReleaseFile(releases.second))
        }
    }
}
