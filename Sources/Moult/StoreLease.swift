internal import MoultBasics
internal import MoultSQLite
package import StepKit

/// Keeps one generation in place while the lease exists, and provides the paths of its files.
///
///     let lease = try store.lease()
///     print(lease.version, try lease.path(of: "phrases"))
public final class StoreLease: Sendable {
    /// The generation's name: version and digest.
    public let generation: String
    /// The version of the release.
    public var version: String { installed.manifest.version.description }
    private let lease: Lease
    private let layout: StoreLayout
    let installed: Generation

    init(_ lease: Lease, _ layout: StoreLayout) throws {
        (self.lease, self.layout) = (lease, layout)
        generation = lease.generation
        installed = try Generation.load(lease.generation, in: layout)
    }

    /// Returns the path of a database in this generation; for a writable database, its stable path.
    ///
    /// Open a writable database only with the SQLite that this library uses: two copies of SQLite in one process do not know each
    /// other's locks, and rows are lost.
    public func path(of name: String) throws -> String { try Advice.forApps { try file(of: name) } }

    /// Does the same as `path(of:)`, with advice for operators in errors.
    private func file(of name: String) throws -> String {
        let database = try installed.database(name)
        return database.kind.isSealed ? installed.path(database.member) : try StoreSnapshot(layout).place(of: database)
    }

    /// A database of the release, described for SQLite's `ATTACH`.
    public struct Attachment: Sendable, Hashable {
        /// The schema name: `main` for the first user database.
        public let schema: String
        /// The URI to open or attach, with the path fully escaped. A read-only database is marked `immutable`, so SQLite writes
        /// nothing next to it, not even with `PRAGMA journal_mode = WAL`. A database that apps write to is never marked so.
        ///
        /// SQLite accepts the URI in `sqlite3_open_v2` with `SQLITE_OPEN_URI`, and in `ATTACH` if the connection was opened
        /// with that flag, or if SQLite was compiled with `SQLITE_USE_URI=1`. Otherwise `ATTACH` fails with `unable to open
        /// database`: use `path` on such a connection, and note that SQLite then does not prevent writes to a read-only
        /// database.
        public let uri: String
        /// The path of the file. Not for a second copy of SQLite in this process: see `attachments`.
        public let path: String
        /// Whether only releases change the database.
        public let isReadOnly: Bool
    }

    /// The databases of the release that belong to no group, for libraries that open databases themselves. `main` is first.
    ///
    /// Such a library must use the same SQLite as this one: two copies in one process do not know each other's locks, and rows are
    /// lost.
    ///
    ///     for database in try lease.attachments where database.schema != "main" {
    ///         try db.execute(sql: "ATTACH ? AS \"\(database.schema)\"", arguments: [database.uri])
    ///     }
    public var attachments: [Attachment] { get throws { try attachments(ofGroup: nil) } }

    /// The groups of databases in the release. Databases without a group are not in this list.
    public var groups: [String] { installed.manifest.groups.compactMap(\.name) }

    /// Returns the databases of a group, as `attachments` does for those without one. Each group opens on its own connection,
    /// because SQLite attaches at most ten databases.
    public func attachments(ofGroup group: String?) throws -> [Attachment] {
        try Advice.forApps {
            try databases(of: group).map { database, schema, path in
                let access: Access = database.kind.isSealed ? .immutable : .asOpened
                return Attachment(
                    schema: schema, uri: try access.uri(for: path), path: path, isReadOnly: database.kind.isSealed)
            }.sorted { $0.schema == "main" && $1.schema != "main" }
        }
    }

    /// Returns the databases of a group as its connection sees them: schema name (`main` for the first user database) and file.
    package func databases(of group: String?) throws -> [(database: Database, schema: String, path: String)] {
        let manifest = installed.manifest
        let names = groups
        if let group, !names.contains(group) {
            throw MoultError(
                .databaseRequest, .refused, what: "release \(manifest.version) has no group \"\(group)\" of databases",
                why: names.isEmpty
                    ? "the release has no groups, and all its databases open together"
                    : "its groups are \(names.joined(separator: ", "))", now: didYouMean(group, among: names))
        }
        let main = manifest.group(group).main
        return try manifest.databases.filter { $0.attach.group == group }.map { database in
            (database, database == main ? "main" : database.attach.alias, try file(of: database.name))
        }
    }

    /// Returns whether a release, or new content of this one, was put into service since the lease was taken.
    public func isOutdated() throws -> Bool { try Advice.forApps { try lease.seen.news(layout) != nil } }
    var seen: Announcement.Seen { lease.seen }
}
