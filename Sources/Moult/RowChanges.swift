internal import MoultBasics
internal import MoultRows
internal import MoultSQLite

/// The rows of a database that changed between two releases.
///
///     for change in try await store.changes(since: "1.0.0") where change.database == "phrases" {
///         for table in change.tables { print(table.name, table.inserted.count, table.deleted.count) }
///     }
public struct RowChanges: Sendable, Equatable {
    /// The name of the database in the manifest.
    public let database: String
    /// Why the whole database must be read again; nil if `tables` has every change.
    public let reload: String?
    /// The tables that changed. Views, and the tables inside of virtual tables, are not listed.
    public let tables: [Table]

    /// The changed rows of a table.
    public struct Table: Sendable, Equatable {
        /// The name of the table.
        public let name: String
        /// The names of the columns of a key: `INTEGER PRIMARY KEY`, otherwise `rowid`, or the primary key of a table WITHOUT ROWID.
        public let key: [String]
        /// The keys of the new rows.
        public let inserted: [[SQLValue]]
        /// The keys of the rows with other values.
        public let updated: [[SQLValue]]
        /// The keys of the rows that are gone.
        public let deleted: [[SQLValue]]
        /// Why the whole table must be read again; nil if the keys are complete. This is so for a virtual table, for a table with
        /// another definition, and if too many rows changed.
        public let reload: String?
    }

    /// The number of changed rows of a table from which on the whole table must be read again, unless another limit is given.
    public static let standardLimit = DatabaseChanges.standardLimit

    /// Returns the changes of a table; nil if it did not change. If the whole database must be read again, so must each table.
    public func table(_ name: String) -> Table? {
        if let reload { return Table(name: name, key: [], inserted: [], updated: [], deleted: [], reload: reload) }
        return tables.first { SQLName($0.name) == SQLName(name) }
    }

    package init(_ changes: DatabaseChanges) {
        (database, reload, tables) = (changes.name, changes.reload, changes.tables.map { Table($0) })
    }
}

extension RowChanges: CustomStringConvertible {
    /// The number of changed rows of each table, such as `phrases: phrase +1 ~2 -0`.
    public var description: String {
        "\(database): \(reload.map { "read it again: \($0)" } ?? tables.map(\.description).joined(separator: ", "))"
    }
}

extension RowChanges.Table: CustomStringConvertible {
    /// The number of changed rows, such as `phrase +1 ~2 -0`.
    public var description: String {
        if let reload { return "\(name) (read it again: \(reload))" }
        return "\(name) +\(inserted.count) ~\(updated.count) -\(deleted.count)"
    }

    init(_ rows: ChangedRows) {
        func keys(_ rows: [[Value]]) -> [[SQLValue]] { rows.map { $0.map { SQLValue($0) } } }
        (name, key, reload) = (rows.table, rows.key, rows.reload)
        (inserted, updated, deleted) = (keys(rows.inserted), keys(rows.updated), keys(rows.deleted))
    }
}
