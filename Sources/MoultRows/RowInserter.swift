import MoultBasics
import MoultSQLite

/// Inserts old rows into a new table one at a time, and reports why a row cannot be inserted.
final class RowInserter {
    enum Attempt {
        case inserted(StoredRows.Key)
        /// Another row has the rowid, and the rowid is not a key of both tables.
        case rowIDTaken
        case conflict(String)
        case misfit(String)
    }

    enum RowID {
        /// One of the columns contains the rowid, or SQLite assigns it, or the table has no rowid.
        case notCarried
        /// The old row's rowid, if that is free.
        case preferred
        /// The old row's rowid, because it is a declared key of both tables and the only identity of the rows.
        case required
    }

    let rowID: RowID
    /// The places of the values in an old row: the first column is its rowid.
    private let places: [Int32]
    private let rows: StoredRows
    private let connection: Connection
    private let plain: Statement
    private let withRowID: Statement
    private let plainConflict: Statement
    private let rowIDConflict: Statement

    init(_ map: ColumnMap, from old: TableLayout, into rows: StoredRows, _ connection: Connection) throws {
        let new = rows.layout
        (self.rows, self.connection) = (rows, connection)
        places = map.pairs.map { Int32($0.old + 1) }
        let isRowIDMapped = new.rowIDColumn.map { column in map.pairs.contains { $0.new == column } } ?? false
        rowID =
            new.isWithoutRowID || isRowIDMapped || old.rowIDName == nil
            ? .notCarried
            : new.hasUniqueKey || old.rowIDColumn == nil || new.rowIDColumn == nil ? .preferred : .required
        let targets = map.pairs.map { quoteIdentifier(new.columns[$0.new].name) }
        let returning = " RETURNING \(new.identity.joined(separator: ", "))"
        func insert(_ columns: [String]) -> String {
            // ABORT overrides the conflict clauses of the schema: here a conflict must be an error.
            "INSERT OR ABORT INTO \(new.sql)(\(columns.joined(separator: ", "))) "
                + "VALUES(\(columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))"
        }
        // Only SQLite can find the row with the same key, because indexes have collations, expressions and conditions. Without
        // a target, this upsert finds the row through any index, and sets a column to the value that it already has.
        let column = targets.first ?? ""
        let findConflict = " ON CONFLICT DO UPDATE SET \(column) = \(column)\(returning)"
        plain = try connection.statement(insert(targets) + (new.isWithoutRowID ? returning : ""))
        plainConflict = try connection.statement(insert(targets) + findConflict)
        // `withRowID` and `rowIDConflict` are never run for a table without rowids.
        let all = new.rowIDName.map { $0 == column || isRowIDMapped ? targets : targets + [$0] } ?? targets
        withRowID = try connection.statement(insert(all))
        rowIDConflict = try connection.statement(insert(all) + findConflict)
    }

    /// Tries to insert the row. With `anyRowID`, SQLite assigns the rowid even if the old rowid should be carried over.
    func insert(_ row: borrowing Statement, anyRowID: Bool) throws -> Attempt {
        let carriesRowID = rowID != .notCarried && !anyRowID
        if carriesRowID {
            try withRowID.bind(row, places + [0])
            return try run(withRowID, carriesRowID: true)
        }
        try plain.bind(row, places)
        return try run(plain, carriesRowID: false)
    }

    /// Returns the identity of an existing row that has a key in common with this row; nil if no row has.
    func conflict(_ row: borrowing Statement, anyRowID: Bool) throws -> StoredRows.Key? {
        if rowID != .notCarried, !anyRowID {
            try rowIDConflict.bind(row, places + [0])
            return try returned(by: rowIDConflict)
        }
        try plainConflict.bind(row, places)
        return try returned(by: plainConflict)
    }

    private func returned(by statement: borrowing Statement) throws -> StoredRows.Key? {
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        let key = try rows.key(statement)
        try statement.run()
        return key
    }

    private func run(_ statement: borrowing Statement, carriesRowID: Bool) throws -> Attempt {
        defer { statement.reset() }
        do {
            guard rows.layout.isWithoutRowID else {
                try statement.run()
                return .inserted(.rowID(try connection.lastInsertRowID))
            }
            guard try statement.step() else {
                throw MoultError(.sqlite, what: "cannot insert into \(rows.layout.name)", why: "no key was returned")
            }
            let key = try rows.key(statement)
            try statement.run()
            return .inserted(key)
        } catch let error as MoultError {
            guard let sqlite = error.sqlite else { throw error }
            switch sqlite.resultCode {
            case .constraintPrimaryKey, .constraintRowID:
                return carriesRowID && rowID == .preferred ? .rowIDTaken : .conflict(sqlite.message)
            case .constraintUnique: return .conflict(sqlite.message)
            case .constraint, .mismatch: return .misfit(sqlite.message)
            // A CHECK, an index or a generated column may contain an expression that fails for this row.
            case .error where AppNeed(error, isAlone: true) == nil: return .misfit(sqlite.message)
            default: throw error
            }
        }
    }
}

extension ResultCode {
    static let constraintPrimaryKey = Self(19 | 6 << 8)
    static let constraintUnique = Self(19 | 8 << 8)
    static let constraintRowID = Self(19 | 10 << 8)
}
