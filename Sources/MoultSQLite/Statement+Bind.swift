import CSQLite
import MoultBasics

extension Statement {
    /// The number of parameters in the statement.
    package var parameterCount: Int32 { sqlite3_bind_parameter_count(pointer) }

    /// Binds all parameters in order.
    package func bind(_ values: [Value]) throws {
        guard values.count == Int(parameterCount) else {
            throw MoultError(
                .databaseRequest, what: "cannot run a statement on \(connection.path)",
                why: "the statement has \(parameterCount) parameters, and \(values.count) values were given: \(sql)")
        }
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
    }

    /// Binds one parameter to a copy of the value.
    package func bind(_ value: Value, at index: Int32) throws {
        switch value {
        case .null: try bindNull(at: index)
        case .integer(let number): try bind(number, at: index)
        case .real(let number): try bind(number, at: index)
        case .text(let text):
            var text = text
            try text.withUTF8 { try bindText(copying: UnsafeRawBufferPointer($0), at: index) }
        case .blob(let bytes): try bytes.withUnsafeBytes { try bindBlob(copying: $0, at: index) }
        }
    }

    package func bind(_ number: Int64, at index: Int32) throws {
        try check(sqlite3_bind_int64(pointer, index, number))
    }

    package func bind(_ number: Double, at index: Int32) throws {
        try check(sqlite3_bind_double(pointer, index, number))
    }

    package func bindNull(at index: Int32) throws {
        try check(sqlite3_bind_null(pointer, index))
    }

    /// Binds UTF-8 text without copying it. The bytes must stay valid until the parameter is bound again, the bindings are
    /// cleared, or the statement ends.
    package func bindText(borrowing bytes: UnsafeRawBufferPointer, at index: Int32) throws {
        try bindText(bytes, at: index, nil)
    }

    /// Binds UTF-8 text; SQLite makes its own copy.
    package func bindText(copying bytes: UnsafeRawBufferPointer, at index: Int32) throws {
        try bindText(bytes, at: index, moult_sqlite_transient())
    }

    /// Binds a blob; SQLite makes its own copy.
    package func bindBlob(copying bytes: UnsafeRawBufferPointer, at index: Int32) throws {
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
            try check(sqlite3_bind_zeroblob(pointer, index, 0))
            return
        }
        try connection.allowValues(of: bytes.count)
        try check(sqlite3_bind_blob64(pointer, index, start, UInt64(bytes.count), moult_sqlite_transient()))
    }

    /// Sets all parameters to NULL, so that SQLite no longer refers to borrowed bytes.
    package func clearBindings() throws {
        try check(sqlite3_clear_bindings(pointer))
    }

    private func bindText(
        _ bytes: UnsafeRawBufferPointer, at index: Int32, _ lifetime: sqlite3_destructor_type?
    ) throws {
        guard let start = bytes.baseAddress else {
            // A null pointer would bind NULL instead of empty text.
            try check(sqlite3_bind_text(pointer, index, "", 0, moult_sqlite_transient()))
            return
        }
        try connection.allowValues(of: bytes.count)
        try check(
            sqlite3_bind_text64(
                pointer, index, start.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), lifetime,
                UInt8(SQLITE_UTF8)))
    }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw failure(code) }
    }
}

extension Statement {
    /// Binds all columns of another statement's current row, in order.
    func bind(_ row: borrowing Statement) throws {
        for column in 0..<row.columnCount { try bind(row, column, at: column + 1) }
    }
}
