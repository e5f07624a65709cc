internal import Moult
internal import MoultBasics
internal import MoultRows
internal import MoultSQLite

/// `moult sql`: queries the databases on one connection, as the app sees them.
enum SQLVerb {
    static let sql = Argument(.text("SQL"), presence: .optional, "One or more statements (default: from stdin)")
    static let noHeader = Option("no-header", "Omit the header")
    static let csv = Option(
        "csv", "Print rows as CSV: text byte for byte, a blob as X'00FF', and NULL as an empty field")
    static let write = Option("write", "Allow statements to change writable databases")

    static let group = Option(
        "group", value: .text("NAME"), "Open the databases of this group instead of those without a group")

    static let command = Command(
        "sql", .operators, "run SQL on the databases",
        discussion: [
            """
            The first user database is main, and the others are attached under their names: SELECT count(*) FROM \
            food.food. The connection holds a lease, so all statements see the same release. The databases are opened as \
            an app opens them: SQLite first undoes a transaction that a killed program left. With --quiet, only rows are \
            printed.
            """
        ], arguments: [sql], options: [noHeader, csv, write, group], rules: [.one([csv, .json])],
        examples: [
            "Run a query:": "moult sql 'SELECT count(*) FROM food.food'",
            "Print rows as JSON:": "moult sql --json 'SELECT * FROM food.food LIMIT 3'",
            "Print one value for a script:": "moult sql -q 'SELECT max(id) FROM food.food'",
            "Print rows as CSV:": "moult sql --csv 'SELECT * FROM food.food'",
            "Run a script:": "moult sql --write < script.sql",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let text = try call.value(sql) ?? standardInput(call)
        let mayWrite = call.has(write)
        let showsHeader = !call.has(noHeader) && !call.output.isQuiet
        let store = try Store(at: call.store()).openConnection(group: call.value(group), recovering: mayWrite)
        try call.reportUnfinished()
        let connection = store.connection
        if !mayWrite {
            try connection.execute("PRAGMA query_only = 1")
            // ATTACH creates a missing file, although SQLite classifies it as a statement that only reads.
            try connection.setLimit(.attached, to: 0)
        }
        var count = 0
        do {
            try connection.forEachStatement(in: text) { statement in
                count += 1
                // SQL itself can switch `query_only` off, but cannot change how SQLite classifies a statement.
                if !mayWrite, !statement.isReadOnly { throw refused(statement.sql) }
                if call.has(csv) {
                    try CSV.write(statement, header: showsHeader, to: call.output)
                } else {
                    let report = try RowsReport(of: statement, on: connection, showsHeader: showsHeader)
                    if call.output.isQuiet, report.columns.isEmpty { return }
                    call.output.print(report, evenIfQuiet: true)
                }
            }
        } catch { throw explained(error, call.value(group), store.lease.groups, mayWrite: mayWrite) }
        if count == 0 { throw call.wrongUsage("the SQL has no statement") }
        let (isOpen, changes) = (try connection.isInTransaction, try connection.totalChanges)
        try store.close()
        if isOpen, changes > 0 {
            throw MoultError(
                .guarded, .refused, what: "the changes were undone",
                why: "the SQL begins a transaction and does not end it", now: "Add COMMIT at the end.")
        }
        return .done
    }

    private static func refused(_ sql: String) -> MoultError {
        MoultError(
            .guarded, .refused, what: "cannot run a statement that writes", why: sql.trimmed,
            now: "To allow changes, use --write.")
    }

    /// Returns the error shortened to SQLite's message and the statement, which the user wrote.
    private static func explained(_ error: any Error, _ group: String?, _ groups: [String], mayWrite: Bool) -> any Error
    {
        guard var explained = error as? MoultError, let said = error.sqlite, let sql = said.sql else { return error }
        explained.what = "cannot run \"\(sql.trimmed)\""
        explained.why = said.message
        if !mayWrite, said.message.hasPrefix("too many attached databases") {
            (explained.code, explained.outcome) = (.guarded, .refused)
            explained.why = "ATTACH creates a missing file"
            explained.now = "To attach another file, use --write."
        }
        if said.message.hasPrefix("no such table"), !groups.isEmpty {
            let others = groups.filter { $0 != group }
            let ways =
                (others.isEmpty ? [] : ["use --group with \(others.joined(separator: ", "))"])
                + (group == nil ? [] : ["leave out --group"])
            explained.now =
                "Only the databases \(group.map { "in the group \($0)" } ?? "without a group") are open here. "
                + "To open others, \(ways.joined(separator: ", or "))."
        }
        if case .readOnly = said.resultCode {
            explained.now =
                "A reference database cannot be changed. For a database of another kind, this user needs write permission "
                + "for the file and its directory."
        }
        return explained
    }

    private static func standardInput(_ call: Call) throws -> String {
        if StandardInput.isTerminal { throw call.wrongUsage("sql needs the argument SQL, or statements on stdin") }
        return try StandardInput.text(limit: 16 << 20)
    }

    /// The result of one statement: rows, or the number of changed rows.
    private struct RowsReport: Report {
        let columns: [String]
        let rows: [[Value]]
        let changes: Int
        let showsHeader: Bool

        init(of statement: borrowing Statement, on connection: Connection, showsHeader: Bool) throws {
            self.showsHeader = showsHeader
            let before = try connection.totalChanges
            columns = statement.columnNames
            var rows: [[Value]] = []
            while try statement.step() { rows.append(try statement.row()) }
            self.rows = rows
            changes = Int(try connection.totalChanges - before)
        }

        func write(to page: inout Page) {
            if columns.isEmpty {
                if changes > 0 { page.line("\(counted(changes, "row")) changed") }
                return
            }
            // Columns of numbers are right-aligned.
            var table = Table(columns.indices.map { column in rows.contains { $0[column].isNumber } ? .right : .left })
            if showsHeader { table.row(columns.map { StyledText($0, .heading) }) }
            for row in rows { table.row(row.map(\.shown)) }
            for line in table.lines(width: nil) { page.line(line) }
        }

        var json: JSON {
            if columns.isEmpty { return .record(["changes": changes]) }
            return .record(["columns": columns, "rows": rows.map { $0.map(\.json) }])
        }
    }

    /// Rows in RFC 4180 format, but with Unix line ends.
    private enum CSV {
        static func write(_ statement: borrowing Statement, header: Bool, to output: Output) throws {
            let count = statement.columnCount
            if header, count > 0 { output.data(line(statement.columnNames.map { Array($0.utf8) })) }
            while try statement.step() { output.data(line(try (0..<count).map { try field(statement, $0) })) }
        }

        /// Returns the bytes of a field; nil for NULL. Text is returned as stored, even if it is not valid UTF-8.
        private static func field(_ statement: borrowing Statement, _ column: Int32) throws -> [UInt8]? {
            switch statement.storage(column) {
            case .null: nil
            case .text: try statement.withText(column) { Array($0) }
            case .integer: Array(String(statement.int64(column)).utf8)
            case .real, .blob: Array(try statement.value(column).description.utf8)
            }
        }

        private static func line(_ fields: [[UInt8]?]) -> [UInt8] {
            Array(fields.map { $0.map(quoted) ?? [] }.joined(separator: [UInt8(ascii: ",")])) + [UInt8(ascii: "\n")]
        }

        /// Quotes a field if necessary. Empty text is quoted, because an empty field is NULL.
        private static func quoted(_ field: [UInt8]) -> [UInt8] {
            let quote = UInt8(ascii: "\"")
            guard field.isEmpty || field.contains(where: { [quote, UInt8(ascii: ","), 0x0A, 0x0D].contains($0) }) else {
                return field
            }
            return [quote] + field.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
        }
    }
}

extension Value {
    fileprivate var isNumber: Bool {
        switch self {
        case .integer, .real: true
        case .null, .text, .blob: false
        }
    }

    fileprivate var shown: StyledText {
        switch self {
        case .null: StyledText("NULL", .dim)
        case .integer(let number): StyledText(String(number))
        case .real, .blob: StyledText(description)
        case .text(let text): StyledText(text)
        }
    }

    fileprivate var json: JSON {
        switch self {
        case .null: .null
        case .integer(let number): .integer(number)
        case .real(let number): .number(number)
        case .text(let text): .string(text)
        // JSON has no byte strings: blobs are written as hexadecimal, under a key that distinguishes them from text.
        case .blob: .record(["blob": String(description.dropFirst(2).dropLast())])
        }
    }
}
