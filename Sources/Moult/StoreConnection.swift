internal import MoultBasics
internal import MoultFiles
package import MoultSQLite
internal import StepKit

/// A connection to the databases of a release: the first user database as `main`, the others under their names.
///
/// Use the connection from one thread at a time. SQL cannot write to read-only databases.
///
///     let connection = try store.connect()
///     for row in try connection.rows("SELECT danish, english FROM phrases.phrase WHERE id < ?", [10]) {
///         print(row[0], row[1])
///     }
///     try connection.execute("INSERT INTO note (text) VALUES (?)", ["rye bread"])
public final class StoreConnection {
    /// Keeps the generation in place while the connection is open.
    public let lease: StoreLease
    package let connection: Connection
    /// The recovery that replaced the database because it could not be loaded; nil if none was needed.
    public let recovered: Recovered?

    /// Opens only this database, as `main`.
    init(lease: StoreLease, only name: String, recovered: Recovered? = nil) throws {
        self.lease = lease
        self.recovered = recovered
        let isSealed = try lease.installed.database(name).kind.isSealed
        connection = try Connection(
            path: lease.path(of: name), access: isSealed ? .immutable : .readWrite, isForApp: true)
        // SQLite does not read the file before the first statement.
        _ = try connection.int("PRAGMA schema_version")
    }

    init(lease: StoreLease, group: String?) throws {
        self.lease = lease
        recovered = nil
        let databases = try lease.databases(of: group)
        let main = databases.first { $0.schema == "main" }
        connection =
            try main.map { main in
                try Self.loading(main.database, main.path) {
                    let connection = try Connection(path: main.path, access: .readWrite, isForApp: true)
                    _ = try connection.int("PRAGMA schema_version")
                    return connection
                }
            }
            ?? Connection.inMemory(
                encoding: databases.first.flatMap { first in
                    try Self.loading(first.database, first.path) { try Connection.encoding(ofFileAt: first.path) }
                }, isForApp: true)
        for (database, schema, path) in databases where schema != "main" {
            // Read-only files have no sidecars and never change, which makes it safe to read them without locks.
            try Self.loading(database, path) {
                try connection.attach(path, as: schema, access: database.kind.isSealed ? .immutable : .readWrite)
            }
        }
    }

    /// Reads a database for the first time; if it is damaged, the error says how to replace it.
    private static func loading<R>(_ database: Database, _ path: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError {
            if error.code == .databaseCorrupt, !database.kind.isSealed {
                throw try MoultError.willNotLoad(database, path, error.why ?? error.what)
            }
            guard try Files.factsThroughLinks(path) == nil else { throw error }
            // An in-place database is in the app's own directory, and the app may have been moved.
            if database.place == .inPlace, let target = try Files.target(ofLink: path) {
                throw MoultError.moved(database, target)
            }
            throw MoultError.missing(database, path)
        }
    }

    /// SQLite's own handle (`sqlite3 *`), for use with the C API. Valid until `close()`.
    public var handle: OpaquePointer { get throws { try connection.handle } }

    /// Runs one statement with `values` bound to its `?` parameters. Returns the number of rows changed.
    @discardableResult
    public func execute(_ sql: String, _ values: [SQLValue] = []) throws -> Int {
        let before = try connection.totalChanges
        _ = try connection.query(sql, values.map(\.stored))
        return Int(try connection.totalChanges - before)
    }

    /// Runs every statement in the text, in order. If one fails, the effects of earlier statements remain.
    public func executeScript(_ sql: String) throws { try connection.execute(sql) }

    /// Runs one statement with `values` bound to its `?` parameters, and returns the rows.
    ///
    /// Text that is not valid UTF-8 is an error; read it as bytes with `CAST(column AS BLOB)`.
    public func rows(_ sql: String, _ values: [SQLValue] = []) throws -> [[SQLValue]] {
        try connection.withOnlyStatement(sql, values.map(\.stored)) { statement in
            var rows: [[SQLValue]] = []
            while try statement.step() {
                rows.append(
                    try (0..<statement.columnCount).map { column in
                        if statement.storage(column) != .text { return SQLValue(try statement.value(column)) }
                        guard let text = try statement.withText(column, { String(validating: $0, as: UTF8.self) })
                        else {
                            let name = statement.columnName(column)
                            throw MoultError(
                                .databaseRequest, what: "cannot read column \(name) as text",
                                why: "the value is not valid UTF-8", now: "Read the bytes with CAST(\(name) AS BLOB).")
                        }
                        return .text(text)
                    })
            }
            return rows
        }
    }

    /// Returns the rows of a query, with each value as text, or nil for NULL.
    package func texts(_ sql: String) throws -> [[String?]] {
        try connection.withStatement(sql) { statement in
            var rows: [[String?]] = []
            while try statement.step() {
                rows.append(try (0..<statement.columnCount).map { statement.isNull($0) ? nil : try statement.text($0) })
            }
            return rows
        }
    }

    /// Closes the connection. The lease ends when the last reference to it is released.
    public func close() throws { try connection.close() }
}
