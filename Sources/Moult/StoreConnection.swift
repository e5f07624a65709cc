internal import MoultBasics
internal import MoultFiles
package import MoultSQLite
internal import MoultStore
internal import StepKit

/// One connection with all databases of a release: the user's as `main`, the others under their names.
///
/// Used by one thread at a time. Sealed databases are read-only, whatever the SQL says.
public final class StoreConnection {
    /// What keeps the generation in place while the connection is open.
    public let lease: StoreLease
    package let connection: Connection
    /// What was done because the database would not load; nil if nothing had to be.
    public let recovered: Recovered?

    /// One database alone, as the connection's main one.
    init(lease: StoreLease, only name: String, recovered: Recovered? = nil) throws {
        self.lease = lease
        self.recovered = recovered
        let isSealed = try lease.installed.database(name).kind.isSealed
        connection = try Connection(path: lease.path(of: name), access: isSealed ? .immutable : .readWrite)
        // Only now SQLite reads the file.
        _ = try connection.int("PRAGMA schema_version")
    }

    init(lease: StoreLease) throws {
        self.lease = lease
        recovered = nil
        let databases = try lease.databases()
        let main = databases.first { $0.schema == "main" }
        connection =
            try main.map { main in
                try Self.loading(main.database, main.path) {
                    let connection = try Connection(path: main.path, access: .readWrite)
                    _ = try connection.int("PRAGMA schema_version")
                    return connection
                }
            }
            ?? Connection.inMemory(encoding: databases.first.flatMap { try Connection.encoding(ofFileAt: $0.path) })
        for (database, schema, path) in databases where schema != "main" {
            // Sealed files have no sidecars and never change: only so they can be read without locks.
            try Self.loading(database, path) {
                try connection.attach(path, as: schema, access: database.kind.isSealed ? .immutable : .readWrite)
            }
        }
    }

    /// Reads a database for the first time; of one that is damaged the error says how to begin it anew.
    private static func loading<R>(_ database: Database, _ path: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError {
            if error.code == .databaseCorrupt, !database.kind.isSealed {
                throw StoreErrors.willNotLoad(database, path, error.why ?? error.what)
            }
            // A database that is used where the app has it: the app may have gone elsewhere.
            if database.place == .inPlace, let target = try Files.target(ofLink: path),
                try Files.factsThroughLinks(path) == nil
            {
                throw StoreErrors.moved(database, target)
            }
            throw error
        }
    }

    /// SQLite's own handle (`sqlite3 *`), for use with the C API; valid until `close()`.
    public var handle: OpaquePointer { get throws { try connection.handle } }

    /// Runs one or more statements.
    public func execute(_ sql: String) throws { try connection.execute(sql) }

    /// Runs one statement with these values in the place of its `?`; nil stands for NULL.
    public func execute(_ sql: String, _ values: [String?]) throws {
        _ = try connection.query(sql, values.map { $0.map(Value.text) ?? .null })
    }

    /// The rows of a query, each value as text; nil stands for NULL.
    public func rows(_ sql: String) throws -> [[String?]] { try table(sql).rows }

    /// The names of a query's columns, and its rows.
    public func table(_ sql: String) throws -> (columns: [String], rows: [[String?]]) {
        try connection.withStatement(sql) { statement in
            let columns = (0..<statement.columnCount).map { statement.columnName($0) }
            var rows: [[String?]] = []
            while try statement.step() {
                rows.append(
                    try (0..<statement.columnCount).map { statement.isNull($0) ? nil : try statement.text($0) })
            }
            return (columns, rows)
        }
    }

    /// Closes the connection; the lease goes when nobody has it any more.
    public func close() throws { try connection.close() }
}
