import CSQLite
import MoultBasics

/// A prepared statement, which is finalized when this value is destroyed.
///
/// Parameters count from 1 and columns from 0, as in SQLite.
package struct Statement: ~Copyable {
    let pointer: OpaquePointer
    package let connection: Connection
    /// The text after this statement in the prepared text.
    package let tail: Substring
    /// Whether the statement ends a transaction, which takes as long as the disk needs, and evaluates nothing.
    private let endsTransaction: Bool

    init(pointer: OpaquePointer, connection: Connection, tail: Substring) {
        (self.pointer, self.connection, self.tail) = (pointer, connection, tail)
        let sql = sqlite3_sql(pointer).map { String(cString: $0) } ?? ""
        endsTransaction = ["COMMIT", "ROLLBACK", "RELEASE"].contains { sql.hasBytePrefix($0) }
    }

    deinit {
        // The result is that of the last step, which was already reported.
        sqlite3_finalize(pointer)
    }

    /// Steps to the next row; returns false at the end.
    package func step() throws -> Bool {
        switch endsTransaction ? sqlite3_step(pointer) : connection.timed({ sqlite3_step(pointer) }) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw failure(code)
        }
    }

    /// Runs to the end and ignores all rows.
    package func run() throws {
        while try step() {}
    }

    /// Resets the statement so that it can run again; bound values stay.
    package func reset() {
        // The result is that of the last step, which was already reported.
        sqlite3_reset(pointer)
    }

    /// The text of the statement, without values.
    package var sql: String { sqlite3_sql(pointer).map { String(cString: $0) } ?? "" }

    /// Whether the statement makes no direct change to a database file.
    package var isReadOnly: Bool { sqlite3_stmt_readonly(pointer) != 0 }

    func failure(_ code: Int32) -> MoultError {
        connection.failure(code, doing: "run a statement on \(connection.path)", sql: sql)
    }
}

/// A value as SQLite stores it.
package enum Value: Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
}

extension Value: Equatable {
    /// Texts are equal only if their bytes are equal: Swift would treat the two encodings of é as equal.
    package static func == (one: Value, other: Value) -> Bool {
        switch (one, other) {
        case (.null, .null): true
        case (.integer(let one), .integer(let other)): one == other
        case (.real(let one), .real(let other)): one == other
        case (.text(let one), .text(let other)): one.hasBytes(of: other)
        case (.blob(let one), .blob(let other)): one == other
        default: false
        }
    }
}

extension Value: CustomStringConvertible {
    /// The value as a SQL literal.
    package var description: String { quoteLiteral(self) }
}
