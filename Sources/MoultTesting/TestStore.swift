public import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultRows
internal import MoultSQLite
internal import MoultTrust
internal import StepKit
internal import Synchronization

/// A store for the tests and previews of an app: made from SQL in a few milliseconds, without releases, signatures and syncs.
///
/// It is an ordinary store on disk, and an app reads it as it reads any other. The directory is removed with the last reference.
///
///     let store = try TestStore([
///         .reference("phrases", "CREATE TABLE phrase(id INTEGER PRIMARY KEY, danish); INSERT INTO phrase VALUES (1, 'hej')"),
///         .user("user", "CREATE TABLE note(text)"),
///     ])
///     let connection = try store.connect()
///     try store.install("2.0.0", [.reference("phrases", "CREATE TABLE phrase(id INTEGER PRIMARY KEY, danish)")])
public final class TestStore: StoreReader {
    /// A database of a test: a name, a kind, and the SQL that makes it.
    public struct Database: Sendable {
        let name: String
        let kind: String
        let sql: String

        /// Returns a read-only database.
        public static func reference(_ name: String, _ sql: String) -> Self {
            .init(name: name, kind: "reference", sql: sql)
        }
        /// Returns a database to which the app writes, and whose content each release replaces. Rows are not carried over.
        public static func shared(_ name: String, _ sql: String) -> Self { .init(name: name, kind: "shared", sql: sql) }
        /// Returns a database of the user. Only the first release makes it; `install` runs no migrations.
        public static func user(_ name: String, _ sql: String) -> Self { .init(name: name, kind: "user", sql: sql) }
        /// Returns a cache. Only the first release makes it.
        public static func cache(_ name: String, _ sql: String) -> Self { .init(name: name, kind: "cache", sql: sql) }
    }

    /// The store's directory.
    public let directory: String
    private let store: Store
    private let layout: StoreLayout
    private let installed = Mutex(0)

    /// Creates a store, in a new directory for temporary files, with its first release.
    public init(_ databases: [Database], version: String = "1.0.0") throws {
        // A directory in memory needs no syncs.
        let memory =
            try Files.facts("/dev/shm")?.kind == .directory && Files.isWritable("/dev/shm") ? "/dev/shm" : "/tmp"
        let parent = try ProcessEnvironment.value("TMPDIR") ?? memory
        directory = "\(try Files.absolute(parent))/moult-test-\(UInt64.random(in: 0...UInt64.max))"
        store = Store(at: directory)
        layout = try StoreLayout(root: directory)
        try Files.ensureDirectory(directory, mode: 0o700)
        do {
            for path in layout.directories { try Files.makeDirectory(path) }
            let settings: JSON = ["moult": 1, "product": "org.example.test"]
            try Files.writeNew(Array(settings.pretty.utf8), to: layout.settings)
            try install(version, databases)
        } catch {
            try Files.removeTree(directory)
            throw error
        }
    }

    deinit {
        // A directory for temporary files that stays does no harm.
        try? Files.removeTree(directory)
    }

    /// Puts another release into service, as an update does: read-only databases are switched together, the content of shared ones
    /// is replaced in place, and events are reported.
    public func install(_ version: String, _ databases: [Database]) throws {
        try installed.withLock { number in
            number += 1
            try install(version, databases, sequence: number)
        }
    }

    private func install(_ version: String, _ databases: [Database], sequence: Int) throws {
        let before = try Generation.currentName(layout)
        let id = Planner.newID()
        let staged = layout.transaction(id)
        try Files.makeDirectory(staged)
        for database in databases { try make(database, in: staged) }
        let manifest = try manifest(version, sequence, databases, in: staged)
        let bytes = Array(manifest.line.utf8)
        let release = try Manifest(parsing: bytes, as: .sealed, source: "the manifest of \(version)")
        let name = try Generation.name(of: release, bytes: bytes)
        try seal(staged, release, bytes, by: id)
        if try Files.facts(layout.generation(name)) == nil {
            try Files.rename(staged, to: layout.generation(name))
        } else {
            try Files.removeTree(staged)
        }
        try LeaseFile.make([name], layout)
        for database in release.databases where database.kind.isSealed {
            let link = layout.file(database.path)
            if try Files.facts(link) == nil { try Files.symlink(to: StoreLayout.link(to: database.member), at: link) }
        }
        try Files.symlink(to: StoreLayout.target(of: name), at: "\(layout.current).new")
        try Files.rename("\(layout.current).new", to: layout.current)
        var changes: [DatabaseChanges] = []
        for database in release.databases where !database.kind.isSealed {
            let file = "\(layout.generation(name))/\(database.member)"
            if let changed = try replace(database, of: release, from: file, by: id) { changes.append(changed) }
        }
        if let before {
            ChangeRecord.want(layout)
            try ChangeRecord(from: before, to: name, transaction: id, databases: changes).write(ofUpdateIn: layout)
        }
        try Announcement(generation: name, transaction: id).write(layout)
    }

    private func make(_ database: Database, in staged: String) throws {
        let connection = try Connection(path: "\(staged)/\(database.name).db", access: .readWriteCreate)
        try connection.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN")
        try connection.execute(database.sql)
        try connection.execute("COMMIT")
        try connection.close()
    }

    private func manifest(_ version: String, _ sequence: Int, _ databases: [Database], in staged: String) throws -> JSON
    {
        let members = try databases.map { database in
            let path = "\(staged)/\(database.name).db"
            var facts: [JSON.Member] = [
                .init("kind", .string(database.kind)), .init("member", .string("\(database.name).db")),
                .init("size", .size(try Files.facts(path)?.size ?? 0)),
                .init("sha256", .string(try SHA256.digest(ofFileAt: path).hex)),
            ]
            if database.kind == "cache" {
                let shape = try SchemaShape(madeBy: database.sql).canonicalText
                let schema = "sha256:\(try SHA256.digest(of: Array(shape.utf8)).hex)"
                facts.append(.init("identity", ["schema": .string(schema)]))
            }
            return JSON.Member(database.name, .object(facts))
        }
        let bundle: JSON = ["file": "test.tar.zst", "size": 1, "sha256": .string(String(repeating: "0", count: 64))]
        return [
            "manifest": 1, "product": "org.example.test", "version": .string(version), "sequence": .size(sequence),
            "bundle": bundle, "databases": .object(members),
        ]
    }

    private func seal(_ staged: String, _ release: Manifest, _ bytes: [UInt8], by id: String) throws {
        var entries: [Seal.Entry] = []
        for database in release.databases {
            let path = "\(staged)/\(database.member)"
            try Files.setMode(path, 0o444)
            guard let facts = try Files.facts(path) else { continue }
            entries.append(Seal.Entry(member: database.member, sha256: database.sha256, facts: facts))
        }
        try Files.writeNew(bytes, to: "\(staged)/\(Generation.manifestName)", mode: 0o444)
        var seal = Seal(entries: entries)
        (seal.manifest, seal.transaction) = (try SHA256.digest(of: bytes).hex, id)
        try Files.writeNew(Array(seal.json.line.utf8), to: "\(staged)/\(Seal.fileName)", mode: 0o444)
    }

    /// Makes a writable database, or replaces the content of a shared one. Returns what has changed in it.
    private func replace(
        _ database: StepKit.Database, of release: Manifest, from file: String, by id: String
    ) throws -> DatabaseChanges? {
        let path = layout.file(database.path)
        let isNew = try Files.facts(path) == nil
        guard database.kind.isReplaced else {
            if isNew { try Files.copy(file, to: path, mode: 0o644) }
            return nil
        }
        let staged = "\(path).new"
        try Files.copy(file, to: staged, mode: 0o644)
        let new = try Connection(path: staged, access: .readWrite)
        try new.execute("PRAGMA synchronous = OFF; BEGIN")
        try new.execute(ReleaseMarker.create)
        let marker: [Value] = [
            .text("\(release.version)"), .integer(Int64(release.sequence)), .text(database.sha256), .text(id),
        ]
        _ = try new.query(ReleaseMarker.insert, marker)
        try new.execute("COMMIT")
        if isNew {
            try new.close()
            try Files.rename(staged, to: path)
            return nil
        }
        let old = try Connection(path: path, access: .readWrite)
        let rows = try ChangedRows.between(old, new, limit: DatabaseChanges.standardLimit)
        try new.backup(to: old)
        try new.close()
        try old.close()
        try Files.remove(staged)
        return DatabaseChanges(database.name, tables: rows)
    }

    public func connect(group: String?, refusingOldData: Bool) throws -> StoreConnection {
        try store.connect(group: group, refusingOldData: refusingOldData)
    }
    public func lease() throws -> StoreLease { try store.lease() }
    public func path(of name: String) throws -> String { try store.path(of: name) }
    public func status() throws -> StoreStatus { try store.status() }
    public var events: StoreEvents { store.events }
    public func events(since lease: StoreLease) -> StoreEvents { store.events(since: lease) }
    public func changes(since lease: StoreLease, limit: Int) -> StoreEvents {
        store.changes(since: lease, limit: limit)
    }
    public func changes(since release: String, limit: Int) async throws -> [RowChanges] {
        try await store.changes(since: release, limit: limit)
    }
}
