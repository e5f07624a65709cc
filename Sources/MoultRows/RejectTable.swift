package import MoultBasics
package import MoultSQLite

/// The table for rows that could not be carried over, and for shipped rows that carried rows replaced.
package struct RejectTable: Sendable {
    package let name: String
    /// The value in the first column of new records.
    package let label: String
    /// Whether the same transfer may run again. If so, no second record is written for a row that already has one.
    package private(set) var isRepeatable: Bool
    /// Whether the records last only as long as the connection, because the caller keeps the complete old content.
    package let isDiscarded: Bool

    package init(name: String = rejectedTable, label: String, isRepeatable: Bool = false, isDiscarded: Bool = false) {
        (self.name, self.label, self.isRepeatable) = (name, label, isRepeatable)
        self.isDiscarded = isDiscarded
    }

    var repeatable: RejectTable {
        var table = self
        table.isRepeatable = true
        return table
    }

    private var schema: String { isDiscarded ? "temp" : "main" }

    static let columns = ["release", "table", "reason", "row"]

    var createSQL: String {
        "CREATE TABLE IF NOT EXISTS \(schema).\(quoteIdentifier(name))(release TEXT, \"table\" TEXT, reason TEXT, row TEXT)"
    }
    var insertSQL: String { "INSERT INTO \(schema).\(quoteIdentifier(name))(\(columnsSQL)) VALUES(?1, ?2, ?3, ?4)" }
    func selectSQL(in connection: Connection) throws -> String {
        "SELECT \(columnsSQL) FROM \(try TableRows(name, in: connection).sql)"
    }
    /// Returns the number of records with a value in a column added by an app. Only the other columns are carried over.
    package func recordsWithMore(in connection: Connection) throws -> Int {
        guard let layout = try TableLayout.of(SQLName(name), in: connection) else { return 0 }
        let own = Set(Self.columns.map { SQLName($0) })
        let more = layout.columns.map(\.name).filter { !own.contains(SQLName($0)) }
        if more.isEmpty { return 0 }
        let values = more.map { "\(quoteIdentifier($0)) IS NOT NULL" }.joined(separator: " OR ")
        return Int(try connection.int("\(layout.rows.countSQL) WHERE \(values)"))
    }

    /// Returns the number of records in a database; 0 if it has no such table, or an app's own table with this name.
    package func count(in connection: Connection) throws -> Int {
        guard let layout = try TableLayout.of(SQLName(name), in: connection), try missingColumn(in: connection) == nil
        else { return 0 }
        return Int(try connection.int(layout.rows.countSQL))
    }

    /// Returns the command that removes the table from a database file.
    package static func removal(from file: String) -> Advice.Command {
        Advice.Command(["sqlite3", file, "DROP TABLE \(rejectedTable)"])
    }

    /// Returns a column that an existing table with this name lacks, which shows that the table is an app's own; otherwise nil.
    package func missingColumn(in connection: Connection) throws -> String? {
        guard let layout = try TableLayout.of(SQLName(name), in: connection) else { return nil }
        return Self.columns.first { layout.place(of: $0) == nil }
    }

    private var columnsSQL: String { Self.columns.map(quoteIdentifier).joined(separator: ", ") }
}

/// Writes to the reject table of the new database, and creates the table when it is first needed.
final class RejectWriter {
    private let table: RejectTable
    private let connection: Connection
    private var isThere: Bool
    /// Writes a record; prepared for the first one.
    private var insertion: RowStatement?
    /// How many records are not yet matched with another one, by digests of the whole record, of all but its label, and of its table
    /// and row.
    private var counts: [KeyDigest: Int] = [:]

    init(_ table: RejectTable, _ connection: Connection) throws {
        (self.table, self.connection) = (table, connection)
        isThere = try Self.isThere(table, connection)
        guard isThere else { return }
        try connection.withStatement(table.selectSQL(in: connection)) { row in
            while try row.step() {
                for columns in [[0, 1, 2, 3], [1, 2, 3], [1, 3]] as [[Int32]] {
                    counts[try KeyDigest(of: row, columns), default: 0] += 1
                }
            }
        }
    }

    /// Copies all records of the old database that the new one lacks. Equal records count separately, because they belong to
    /// different rows.
    func carryRecords(from old: Connection) throws {
        guard try Self.isThere(table, old) else { return }
        try old.withStatement(table.selectSQL(in: old)) { row in
            while try row.step() {
                if try take(KeyDigest(of: row, 0..<4)) { continue }
                try write(row)
                counts[try KeyDigest(of: row, 1..<4), default: 0] += 1
            }
        }
    }

    /// Writes a record even if an equal one exists, because each rejected row has its own record. Returns false if an earlier
    /// run of the transfer already wrote the row's record.
    @discardableResult
    func write(_ row: String, of source: String, because reason: String) throws -> Bool {
        try withRecord(row, source, reason) { record in
            if table.isRepeatable, try take(KeyDigest(of: record, [1, 3])) { return false }
            try write(record)
            return true
        }
    }

    /// Writes a record unless the table already has one that is equal except for the label.
    func writeOnce(_ row: String, of source: String, because reason: String) throws {
        let isNew = try withRecord(row, source, reason) { record in
            counts.updateValue(0, forKey: try KeyDigest(of: record, 1..<4)) == nil
        }
        if isNew { try write(row, of: source, because: reason) }
    }

    private func withRecord<R>(
        _ row: String, _ source: String, _ reason: String, _ body: (borrowing Statement) throws -> R
    ) throws -> R {
        try connection.withStatement("SELECT ?1, ?2, ?3, ?4") { record in
            try record.bind([.text(table.label), .text(source), .text(reason), .text(row)])
            _ = try record.step()
            return try body(record)
        }
    }

    private func take(_ digest: KeyDigest) -> Bool {
        guard let count = counts[digest], count > 0 else { return false }
        counts[digest] = count - 1
        return true
    }

    private func write(_ record: borrowing Statement) throws {
        try create()
        let insertion = try insertion ?? RowStatement(connection.statement(table.insertSQL), [0, 1, 2, 3])
        self.insertion = insertion
        try insertion.run(like: record)
    }

    private func create() throws {
        if isThere { return }
        try connection.run(table.createSQL)
        isThere = true
    }

    private static func isThere(_ table: RejectTable, _ connection: Connection) throws -> Bool {
        guard !table.isDiscarded, try TableLayout.of(SQLName(table.name), in: connection) != nil else { return false }
        if let missing = try table.missingColumn(in: connection) {
            throw MoultError(
                .selection, .refused, what: "cannot carry over the rows of \(connection.path)",
                why: "its table \(table.name) has no column \(missing)", now: "Rename that table.")
        }
        return true
    }
}
