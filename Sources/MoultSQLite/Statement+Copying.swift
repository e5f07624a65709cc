import CSQLite
import MoultBasics

extension Statement {
    /// Binds a value of another statement's current row as it is stored: storage class and bytes, also of text that is
    /// not UTF-8.
    func bind(_ column: Int32, of row: borrowing Statement, at index: Int32) throws {
        let code = sqlite3_bind_value(pointer, index, sqlite3_column_value(row.pointer, column))
        guard code == SQLITE_OK else { throw failure(code) }
    }

    /// Binds all columns of another statement's current row, in order.
    func bind(_ row: borrowing Statement) throws {
        for column in 0..<row.columnCount { try bind(column, of: row, at: column + 1) }
    }
}
