internal import MoultBasics
internal import MoultStore
package import StepKit

/// Keeps one generation in place while it is alive, and knows where its files are.
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

    /// The file of a database in this very generation; for a living one its fixed path.
    public func path(of name: String) throws -> String {
        let database = try installed.database(name)
        return database.kind.isSealed ? installed.path(database.member) : try StoreSnapshot(layout).place(of: database)
    }

    /// Every database as a connection has it: the name of its schema (`main` for the first one of the user's), and its file.
    package func databases() throws -> [(database: Database, schema: String, path: String)] {
        let main = installed.manifest.databases.first { $0.kind.isMain }
        return try installed.manifest.databases.map { database in
            (database, database == main ? "main" : database.attach.alias, try path(of: database.name))
        }
    }

    /// Whether another generation is current by now.
    public func isOutdated() throws -> Bool { try Generation.currentName(layout) != generation }
}
