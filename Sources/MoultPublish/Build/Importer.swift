internal import MoultBasics
internal import MoultSQLite

/// Imports the rows of a file into a table, like the `.import` command of the sqlite3 shell.
struct Importer {
    let connection: Connection
    let warnings: WarningLimiter
    let request: ImportRequest
    let format: RowFormat
    /// The path of the file, and its name in messages.
    let path: String
    let file: String
    let place: Place
    /// Whether the build stops at a row that cannot be inserted.
    let bails: Bool
    /// Whether to skip empty records, as the shell does in `.mode ascii`, regardless of the format of the file.
    let skipsEmpty: Bool
    let progress: (PackProgress) throws -> Void

    struct Count {
        var rows = 0
        var failed = 0
        var bytes = 0
    }

    func run() throws -> Count {
        do { return try importAll() } catch {
            // An error about a row already says where the row is; other errors are about the table.
            guard let sqlite = error.sqlite, (error as? MoultError)?.code != .importing else { throw error }
            throw MoultError(
                .importing, what: "\(place): cannot import \(file) into \(request.table)", why: sqlite.message,
                cause: error)
        }
    }

    private func importAll() throws -> Count {
        let stream = try RowStream(path: path, format: format)
        var (batch, start) = try skip(request.skip, of: stream)
        if try !tableExists() {
            guard let first = batch else {
                throw problem(
                    "\(file) is empty", "the table \(request.table) would be created from the first row of the file")
            }
            try makeTable(first, first.rowRoom[start])
            start += 1
        }
        let columns = try connection.withStatement("SELECT * FROM \(name)") { $0.columnNames }
        let wasInTransaction = try connection.isInTransaction
        if !wasInTransaction { try connection.execute("BEGIN") }
        var count = Count()
        let parameters = [String](repeating: "?", count: columns.count).joined(separator: ",")
        try connection.withStatement("INSERT INTO \(name) VALUES(\(parameters))") { statement in
            if let batch, start < batch.rowCount { warnOfHeader(batch, batch.rowRoom[start], columns) }
            while let rows = batch {
                try insert(rows, from: start, statement, columns.count, &count)
                count.bytes = min(count.bytes + rows.bytes.count, stream.size)
                try progress(PackProgress(what: "import \(file)", done: count.bytes, total: stream.size))
                (batch, start) = (try next(stream), 0)
            }
        }
        // A conflict clause of the schema may have rolled the transaction back.
        if try !wasInTransaction && connection.isInTransaction { try connection.execute("COMMIT") }
        warnings.flush(WarningLimiter.Kind.ofRows, of: file)
        return count
    }

    /// Skips `count` rows. Returns the batch with the next row, and the index of that row in the batch.
    private func skip(_ count: Int, of stream: RowStream) throws -> (RowBatch?, Int) {
        var count = count
        while let batch = try next(stream) {
            if count < batch.rowCount { return (batch, count) }
            count -= batch.rowCount
            batch.notices.forEach(report)
        }
        return (nil, 0)
    }

    private func next(_ stream: RowStream) throws -> RowBatch? {
        do { return try stream.next() } catch var error as MoultError {
            if error.code == .importing { error.what = "\(file): \(error.what)" }
            throw error
        }
    }

    private var name: String {
        (request.schema.map { quoteIdentifier($0) + "." } ?? "") + quoteIdentifier(request.table)
    }

    private func problem(_ what: String, _ why: String? = nil, now: Advice? = nil) -> MoultError {
        MoultError(.importing, what: "\(place): \(what)", why: why, now: now)
    }

    private func tableExists() throws -> Bool {
        let sql = "SELECT count(*) FROM pragma_table_list WHERE name = ?1 COLLATE NOCASE"
        guard let schema = request.schema else { return try connection.int(sql, [.text(request.table)]) > 0 }
        return try connection.int(sql + " AND schema = ?2 COLLATE NOCASE", [.text(request.table), .text(schema)]) > 0
    }

    private func makeTable(_ batch: RowBatch, _ row: RowBatch.Row) throws {
        let header = try batch.fields(of: row).filter { !$0.isMissing }.map { field in
            guard let text = String(validating: batch.text(field), as: UTF8.self) else {
                throw problem("\(file):\(row.line): a column name is not UTF-8", now: "Save the file as UTF-8.")
            }
            return text
        }
        let columns = ColumnNames(header)
        let renamed = columns.renamed.map { "\"\($0.from)\" to \"\($0.to)\"" }.joined(separator: ", ")
        if !renamed.isEmpty {
            warnings.add(.note, Place(file: file, line: row.line), "columns renamed due to duplicates: \(renamed)")
        }
        do { try connection.run("CREATE TABLE \(name)\(columns.definitions)") } catch {
            throw problem("cannot create the table \(request.table) from the first row of \(file)", message(error))
        }
        warnings.add(
            .note, place,
            "the table \(request.table) does not exist: it is created with the columns in the first row of \(file), "
                + "all of type TEXT (\(columns.names.joined(separator: ", ")))")
    }

    /// Warns if the first row looks like a header: if the table exists, a header is imported like any other row, as in the
    /// shell.
    private func warnOfHeader(_ batch: RowBatch, _ row: RowBatch.Row, _ columns: [String]) {
        let fields = batch.fields(of: row)
        guard fields.count == columns.count else { return }
        let names = fields.map { $0.isMissing ? "" : String(decoding: batch.text($0), as: UTF8.self).lowercased() }
        guard names == columns.map({ $0.lowercased() }) else { return }
        warnings.add(
            .note, Place(file: file, line: row.line),
            "the first row contains the column names but is imported as data, because the table \(request.table) "
                + "already exists; skip it with .import --skip 1")
    }

    private func insert(
        _ batch: RowBatch, from start: Int, _ statement: borrowing Statement, _ columns: Int, _ count: inout Count
    ) throws {
        var notices = batch.notices[...]
        for index in 0..<batch.rowCount {
            while let notice = notices.first, notice.row <= index {
                report(notice)
                notices.removeFirst()
            }
            if index < start { continue }
            let row = batch.rowRoom[index]
            if skipsEmpty, isEmpty(batch, row) { continue }
            if row.fieldCount != columns { reportCount(row, columns) }
            do {
                for column in 0..<columns {
                    let parameter = Int32(truncatingIfNeeded: column + 1)
                    let field = column < row.fieldCount ? batch.fieldRoom[row.firstField + column] : .missing
                    if field.isMissing {
                        try statement.bindNull(at: parameter)
                    } else {
                        try statement.bindText(borrowing: batch.text(field), at: parameter)
                    }
                }
                _ = try statement.step()
                count.rows += 1
            } catch { try failed(error, row, &count) }
            statement.reset()
        }
        // The bytes of the batch are about to be reused.
        try statement.clearBindings()
    }

    /// Counts a row that the table does not accept, or throws the error for it.
    private func failed(_ error: any Error, _ row: RowBatch.Row, _ count: inout Count) throws {
        let text = "INSERT failed: \(message(error))"
        guard !bails, error.isCausedByScript else {
            throw MoultError(
                .importing, what: "\(file):\(row.line): \(text)",
                why: "\(place) imports the row into the table \(request.table)",
                now: "Fix the row, or add .bail off to the script to skip such rows.", cause: error)
        }
        count.failed += 1
        warnings.add(.failedRow, Place(file: file, line: row.line), text)
    }

    private func message(_ error: any Error) -> String { error.sqlite?.message ?? "\(error)" }

    /// Returns whether to skip a record. In `.mode ascii` the shell skips a record whose first field is empty. If other fields
    /// follow, the shell inserts the previous row again or nothing; moult inserts the row.
    private func isEmpty(_ batch: RowBatch, _ row: RowBatch.Row) -> Bool {
        guard let first = batch.fields(of: row).first, first.isMissing || first.start == first.end else { return false }
        if row.fieldCount == 1 { return true }
        warnings.add(
            .emptyField, Place(file: file, line: row.line),
            "the first field is empty; the sqlite3 shell would not import this row as it is")
        return false
    }

    private func report(_ notice: RowBatch.Notice) {
        let place = Place(file: file, line: notice.line)
        switch notice.kind {
        case .unescapedQuote: warnings.add(.unescaped, place, "unescaped \" character")
        case .unterminatedQuote: warnings.add(.unterminated, place, "unterminated \"-quoted field")
        case .nul:
            warnings.add(.nul, place, "field \(notice.column) contains a NUL character: the text after it is dropped")
        case .notUTF8: warnings.add(.encoding, place, "field \(notice.column) is not UTF-8; its bytes are kept")
        }
    }

    private func reportCount(_ row: RowBatch.Row, _ wanted: Int) {
        let text = "expected \(wanted) columns but found \(row.fieldCount) - "
        let place = Place(file: file, line: row.line)
        if row.fieldCount > wanted { return warnings.add(.manyColumns, place, text + "extras ignored") }
        warnings.add(.fewColumns, place, text + "filling the rest with NULL")
    }
}
