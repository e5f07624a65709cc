import CSQLite
import MoultBasics

extension Connection {
    package func withStatement<R>(_ sql: String, _ body: (borrowing Statement) throws -> R) throws -> R {
        let statement = try statement(sql)
        return try body(statement)
    }

    /// Prepares the first statement of the text, for a type that stores it and must release it before `close()`.
    package func statement(_ sql: String) throws -> Statement {
        guard let statement = try prepare(sql[...]) else {
            throw MoultError(
                .databaseRequest, what: "cannot run this SQL on \(path)", why: "it contains no statement: \"\(sql)\"")
        }
        return statement
    }

    /// Passes each statement to the closure. A statement is prepared only after the previous ones have run.
    package func forEachStatement(in sql: String, _ body: (borrowing Statement) throws -> Void) throws {
        var rest = sql[...]
        while let statement = try prepare(rest) {
            try body(statement)
            rest = statement.tail
        }
    }

    /// Runs a single statement and discards its rows. SQL with names from outside is run with this function, so that it could not
    /// run a second statement even if a name were quoted wrongly.
    package func run(_ sql: String) throws { try withOnlyStatement(sql, []) { try $0.run() } }

    /// Runs all statements of the text and discards their rows: of a constant, or of a script.
    package func execute(_ sql: String) throws {
        try forEachStatement(in: sql) { try $0.run() }
    }

    package func query(_ sql: String, _ bindings: [Value] = []) throws -> [[Value]] {
        try withOnlyStatement(sql, bindings) { statement in
            var rows: [[Value]] = []
            while try statement.step() { rows.append(try statement.row()) }
            return rows
        }
    }

    /// Returns the first column of the first row; nil if the result is empty.
    package func scalar(_ sql: String, _ bindings: [Value] = []) throws -> Value? {
        try withOnlyStatement(sql, bindings) { statement in
            guard try statement.step() else { return nil }
            let value = try statement.value(0)
            // A statement that writes commits at its end, and only then does SQLite report a failure.
            if !statement.isReadOnly { try statement.run() }
            return value
        }
    }

    /// Returns the first column of the first row, which must be an integer.
    package func int(_ sql: String, _ bindings: [Value] = []) throws -> Int64 {
        let value = try scalar(sql, bindings)
        guard case .integer(let number)? = value else {
            throw MoultError(
                .databaseRequest, what: "a query on \(path) did not return an integer",
                why: "\(value.map { "\($0)" } ?? "no row") is the result of: \(sql)")
        }
        return number
    }

    /// The number of rows changed since the connection was opened, including changes by triggers and foreign keys.
    package var totalChanges: Int64 { get throws { sqlite3_total_changes64(try handle) } }
    package var lastInsertRowID: Int64 { get throws { sqlite3_last_insert_rowid(try handle) } }

    /// Prepares a text with a single statement, binds the values, and passes the statement to the closure.
    package func withOnlyStatement<R>(
        _ sql: String, _ bindings: [Value], _ body: (borrowing Statement) throws -> R
    ) throws -> R {
        try withStatement(sql) { statement in
            if !statement.tail.isEmpty, try prepare(statement.tail) != nil {
                throw MoultError(
                    .databaseRequest, what: "cannot run more than one statement at a time on \(path)",
                    why: "the SQL contains a second statement: \(sql)")
            }
            try statement.bind(bindings)
            return try body(statement)
        }
    }

    /// Prepares a single statement given as bytes, which need not be valid UTF-8, and passes it to the closure.
    func withOnlyStatement<R>(bytes sql: [UInt8], _ body: (borrowing Statement) throws -> R) throws -> R {
        var pointer: OpaquePointer?
        let handle = try handle
        let code = sql.withUnsafeBytes { bytes in
            timed {
                sqlite3_prepare_v2(
                    handle, bytes.bindMemory(to: CChar.self).baseAddress, Int32(bytes.count), &pointer, nil)
            }
        }
        guard code == SQLITE_OK, let pointer else {
            throw failure(code, doing: "run a statement on \(path)", sql: String(decoding: sql, as: UTF8.self))
        }
        return try body(Statement(pointer: pointer, connection: self, tail: ""))
    }

    /// Prepares the first statement of the text; nil if the text contains only white space and comments.
    private func prepare(_ sql: Substring) throws -> Statement? {
        let handle = try handle
        guard !sql.utf8.contains(0) else {
            throw MoultError(
                .databaseRequest, what: "cannot run this SQL on \(path)",
                why: "the statement contains a NUL character")
        }
        authorizer?.denied = nil
        var rest = sql
        while true {
            var text = rest
            var pointer: OpaquePointer?
            let (code, used) = text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) { bytes -> (Int32, Int) in
                    // Empty text has no address, and SQLite reports a missing address as misuse.
                    guard let start = bytes.baseAddress else { return (SQLITE_OK, 0) }
                    var tail: UnsafePointer<CChar>?
                    let code = timed {
                        sqlite3_prepare_v2(handle, start, Int32(clamping: bytes.count), &pointer, &tail)
                    }
                    return (code, tail.map { $0 - start } ?? 0)
                }
            }
            guard code == SQLITE_OK else { throw failure(code, doing: "run a statement on \(path)", sql: String(rest)) }
            let tail = rest[rest.utf8.index(rest.startIndex, offsetBy: used)...]
            if let pointer { return Statement(pointer: pointer, connection: self, tail: tail) }
            // A comment or a single semicolon yields no statement, but one may follow it.
            if tail.isEmpty || used == 0 { return nil }
            rest = tail
        }
    }
}
