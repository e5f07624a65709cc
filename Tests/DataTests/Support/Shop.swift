import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A store of the product `local.shop`, its releases, and the command.
struct Shop {
    let scratch: Scratch
    let store: String

    /// Returns the path of the built command.
    static func command() throws -> String { try BuiltMoult.path() }

    /// Creates the store in `directory`, which must exist, or by default in the scratch directory.
    init(storeIn directory: String? = nil) throws {
        scratch = try Scratch()
        store = "\(directory ?? scratch.path)/store"
        try Files.ensureDirectory(scratch.path("releases"))
        // Many tests hold a lock until the command gives up, so the wait is short.
        try Orchestrator.create(at: store, Settings(product: "local.shop"))
        try Settings.rewrite(StoreLayout(root: store), "waitForApps", 1)
    }

    // MARK: Releases

    /// Packs a release with `moult pack`, and returns the path of its manifest.
    @discardableResult
    func pack(_ version: String, _ databases: [Shipped]) throws -> String {
        let draft = draft(version, databases)
        try Fixture.copy("\(draft)", to: scratch.path("releases")) { directory in
            let ended = try pack(draft, into: directory)
            try #require(ended.status == 0, "pack \(version): \(ended.errors)")
        }
        return manifest(version)
    }

    func manifest(_ version: String) -> String { scratch.path("releases/shop-\(version).json") }

    /// Runs `moult pack` for a release that may be refused, and returns its output.
    func tryToPack(_ version: String, _ databases: [Shipped]) throws -> Shell.Ended {
        try pack(draft(version, databases), into: scratch.path("releases"))
    }

    /// Packs each release in a separate directory: `moult pack` tries a release over earlier ones, and many tests need
    /// releases that stores refuse.
    private func pack(_ draft: [(name: String, text: String)], into directory: String) throws -> Shell.Ended {
        let work = scratch.path("draft")
        defer { try? Files.removeTree(work) }
        for (name, text) in draft {
            try Files.ensureDirectories(Files.directory(of: "\(work)/\(name)"))
            try Files.writeNew(Array(text.utf8), to: "\(work)/\(name)")
        }
        let made = "\(work)/packed"
        let ended = try BuiltMoult.run(["pack", "--allow-dirty", "\(work)/draft.json", "-o", made])
        guard ended.status == 0 else { return ended }
        try Files.ensureDirectories(directory)
        try Shell.must(["sh", "-ec", "mv \(made)/* \(directory)"])
        return ended
    }

    private func draft(_ version: String, _ databases: [Shipped]) -> [(name: String, text: String)] {
        var files: [(name: String, text: String)] = []
        var entries: [JSON.Member] = []
        for database in databases {
            let script = "\(database.name).sql"
            files.append((script, database.sql))
            var entry: [JSON.Member] = [
                .init("kind", .string(database.kind)), .init("build", ["script": .string(script)]),
            ]
            if !database.migrations.isEmpty {
                files += database.migrations.map { ($0.key, $0.value) }
                entry.append(.init("migrations", .array(database.migrations.map { .string($0.key) })))
            }
            if database.kind == "shared", !database.more.contains(where: { $0.name == "preserve" }) {
                entry.append(.init("preserve", []))
            }
            entries.append(.init(database.name, .object(entry + database.more)))
        }
        let draft: JSON = [
            "manifest": 1, "product": "local.shop", "version": .string(version), "sequence": .size(sequence(version)),
            "databases": .object(entries),
        ]
        return files + [("draft.json", draft.pretty)]
    }

    /// Makes a release as another program would, without the checks of `moult pack`.
    func makeUnchecked(_ version: String, _ databases: [Shipped]) throws -> String {
        var maker = try ReleaseMaker(in: scratch.path("unchecked"))
        maker.product = "local.shop"
        let sources: [ReleaseMaker.Source] = try databases.map {
            switch $0.kind {
            case "shared": .shared($0.name, $0.sql, more: $0.more)
            case "user": .user($0.name, $0.sql, migrations: $0.migrations, more: $0.more)
            case "cache": try .cache($0.name, $0.sql, more: $0.more)
            default: .reference($0.name, $0.sql, more: $0.more)
            }
        }
        return try maker.make(version, sequence: sequence(version), sources)
    }

    private func sequence(_ version: String) -> Int {
        version.split(separator: ".").reduce(0) { $0 * 100 + (Int($1) ?? 0) }
    }

    // MARK: The command

    func moult(_ arguments: String...) throws -> Shell.Ended { try moult(arguments) }

    func moult(_ arguments: [String]) throws -> Shell.Ended {
        try BuiltMoult.run(arguments + ["--store", store])
    }

    /// Runs a command that must succeed.
    func must(_ arguments: String...) throws {
        let ended = try moult(arguments)
        try #require(ended.status == 0, "\(arguments): exit \(ended.status): \(ended.errors)")
    }

    /// Applies a release, named by its version or by the path of its manifest.
    func apply(_ release: String, _ more: String...) throws -> Shell.Ended {
        try moult(["apply", release.hasSuffix(".json") ? release : manifest(release)] + more)
    }

    /// Applies a release; the command must succeed.
    func install(_ release: String, _ more: String...) throws {
        let ended = try moult(["apply", release.hasSuffix(".json") ? release : manifest(release)] + more)
        try #require(ended.status == 0, "apply \(release): exit \(ended.status): \(ended.errors)")
    }

    func plan(_ release: String, _ more: String...) throws -> Shell.Ended {
        try moult(["plan", release.hasSuffix(".json") ? release : manifest(release)] + more)
    }

    /// Returns the last object that a command with `--json` printed.
    static func last(_ ended: Shell.Ended) throws -> JSON {
        let line = try #require(ended.output.split(separator: "\n").last, "nothing was printed: \(ended.errors)")
        return try JSON(parsing: String(line), source: "stdout")
    }

    // MARK: The content of the store

    func path(_ name: String) -> String { "\(store)/\(name)" }

    /// Runs SQL on a database of the store with the sqlite3 program.
    @discardableResult
    func sql(_ name: String, _ sql: String) throws -> String { try Self.sql(path(name), sql) }

    @discardableResult
    static func sql(_ path: String, _ sql: String) throws -> String { try Shell.must(["sqlite3", path, sql]) }

    /// Returns the result of a query, or SQLite's message if the query fails.
    func read(_ name: String, _ sql: String) throws -> String { try Self.read(path(name), sql) }

    static func read(_ path: String, _ sql: String) throws -> String {
        guard try Files.factsThroughLinks(path) != nil else { return "\(path) is missing" }
        let ended = try Shell.run(["sqlite3", path, sql])
        return ended.status == 0 ? ended.output : ended.output + ended.errors
    }

    /// Returns everything in the store except the records of attempts: the history, the lock and cached feeds.
    func tree() throws -> Tree {
        try Tree(
            store, times: false,
            skipping: [".moult/history.jsonl", ".moult/lock", ".moult/feed", ".moult/transactions", ".moult/downloads"])
    }

    /// Returns the installed version.
    func version() throws -> String? {
        try JSON(parsing: try moult("status", "--json").output, source: "status")["installed"]?.string
    }
}

/// A database of a release.
struct Shipped {
    var name: String
    var kind: String
    var sql: String
    var migrations: KeyValuePairs<String, String> = [:]
    var more: [JSON.Member] = []

    static func shared(_ sql: String, _ preserve: [JSON] = [], name: String = "app", more: [JSON.Member] = []) -> Self {
        let kept: [JSON.Member] = preserve.isEmpty ? [] : [.init("preserve", .array(preserve))]
        return Shipped(name: name, kind: "shared", sql: sql, more: kept + more)
    }

    static func user(
        _ sql: String, _ migrations: KeyValuePairs<String, String> = [:], name: String = "diary",
        more: [JSON.Member] = []
    ) -> Self { Shipped(name: name, kind: "user", sql: sql, migrations: migrations, more: more) }

    static func cache(_ sql: String, name: String = "cache") -> Self { Shipped(name: name, kind: "cache", sql: sql) }

    static func reference(_ sql: String, name: String = "food") -> Self {
        Shipped(name: name, kind: "reference", sql: sql)
    }
}
