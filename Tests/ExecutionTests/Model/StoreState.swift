import Moult
import MoultBasics
import MoultFiles
import MoultRows
import MoultSQLite
import MoultTrust
import TestSupport

/// The visible state of an idle store: the pointer, every database with its content, settings, and all names.
struct StoreState: Equatable {
    let current: String?
    /// The digest of each read-only database.
    private(set) var sealed: [String: String] = [:]
    /// The content of each writable database: health, schema, rows, journal mode.
    private(set) var writable: [String: String] = [:]
    let settings: JSON
    /// The releases on hold, with the reasons.
    let holds: [String]
    let names: Set<String>

    init(_ store: String, scratch: Scratch) throws {
        let layout = try StoreLayout(root: store)
        current = try Generation.currentName(layout)
        for name in try Files.list(store) where name.hasSuffix(".db") {
            let path = "\(store)/\(name)"
            if try Files.facts(path)?.kind == .link {
                let isThere = try Files.factsThroughLinks(path) != nil
                sealed[name] = try isThere ? SHA256.digest(ofFileAt: path).hex : "nothing"
            } else {
                writable[name] = try Self.content(path, scratch)
            }
        }
        settings = try JSON(parsing: Files.read(layout.settings, limit: 1 << 20) ?? [], source: layout.settings)
        holds = try Holds.read(layout, Settings.read(layout)).all.map(\.sentence)
        names = try Self.names(store)
    }

    /// Describes the content of a database. Reads a copy, because opening a database may change its sidecars.
    private static func content(_ path: String, _ scratch: Scratch) throws -> String {
        let copy = scratch.path("look.db")
        for suffix in ["", "-wal", "-journal", "-shm"] {
            try Files.remove(copy + suffix)
            if suffix != "-shm", try Files.facts(path + suffix) != nil {
                try Files.copy(path + suffix, to: copy + suffix, mode: 0o644)
            }
        }
        let connection: Connection
        do {
            connection = try Connection(path: copy, access: .readWrite)
            _ = try connection.int("SELECT count(*) FROM sqlite_schema")
        } catch { return "no database: \(try SHA256.digest(ofFileAt: copy).hex)" }
        let mode = try connection.scalar("PRAGMA journal_mode")
        let version = try connection.int("PRAGMA user_version")
        var health = try connection.quickCheck().joined(separator: ", ")
        if health.isEmpty { health = "sound" }
        var content: [String] = []
        for table in try connection.query("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
            guard case .text(let name)? = table.first else { continue }
            content.append("\(table) \(try connection.query("SELECT * FROM \"\(name)\"").map { "\($0)" }.sorted())")
        }
        try connection.close()
        // A shared database names the transaction that wrote it; a repeated update is another one.
        let text = content.joined(separator: "\n").replacing(/[0-9]{14}-[0-9a-f]{8}/, with: "ID")
        let digest = try SHA256.digest(of: Array(text.utf8)).hex.prefix(8)
        return "\(health), in mode \(mode ?? .null), of version \(version), with \(digest)"
    }

    /// Returns each name with its kind, except the names of transactions and files that only record the past.
    private static func names(_ store: String) throws -> Set<String> {
        var found: Set<String> = []
        func walk(_ path: String, _ name: String) throws {
            // `checks.json` and `attempt.json` are left out as well: the next command that checks or updates recreates them.
            let kept = [
                ".moult/history.jsonl", ".moult/feed", ".moult/links.json", ".moult/lock", ".moult/checks.json",
                ".moult/attempt.json",
            ]
            if kept.contains(name) || name.hasSuffix("-wal") || name.hasSuffix("-shm") { return }
            let facts = try Files.facts(path)
            found.insert("\(name) \(facts?.kind ?? .other) \(try Files.target(ofLink: path) ?? "")")
            guard facts?.kind == .directory else { return }
            for child in try Files.list(path) {
                let isUpdate = name == ".moult/quarantine" && child.utf8.count > 24
                try walk(
                    "\(path)/\(child)",
                    name.isEmpty ? child : "\(name)/\(isUpdate ? "ID" + child.dropFirst(23) : child)")
            }
        }
        try walk(store, "")
        return found
    }

    func differences(to other: StoreState) -> [String] {
        var found: [String] = []
        if current != other.current { found.append("current is \(current ?? "nothing")") }
        for (name, ours, theirs) in [("sealed", sealed, other.sealed), ("writable", writable, other.writable)] {
            for file in Set(ours.keys).union(theirs.keys).sorted() where ours[file] != theirs[file] {
                found.append("\(name) \(file) is \(ours[file] ?? "missing")")
            }
        }
        if settings != other.settings { found.append("settings are \(settings.line)") }
        if holds != other.holds { found.append("holds are \(holds)") }
        found += names.subtracting(other.names).sorted().map { "left over: \($0)" }
        return found + other.names.subtracting(names).sorted().map { "missing: \($0)" }
    }
}
