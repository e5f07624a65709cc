internal import MoultBasics
internal import MoultSQLite

extension ScriptRunner {
    func run(_ statement: ScriptStatement) throws {
        try options.progress(.running(statement.place))
        try observing(statement.place, statement.sql) {
            // One statement for the shell may be several for SQLite's parser.
            var rest = statement.sql
            while !isBlank(rest) { rest = try runFirst(rest, at: statement.place) }
        }
    }

    private func isBlank(_ sql: String) -> Bool {
        if sql.isEmpty { return true }
        var scanner = StatementScanner()
        for byte in sql.utf8 {
            scanner.feed(byte)
            if scanner.hasBegun { return false }
        }
        return true
    }

    /// Runs the first statement of the text; returns the remaining text. Text in double quotes is an identifier. SQLite can
    /// treat such text as a string if no such identifier exists; moult allows that, with a warning, only if the statement
    /// cannot be prepared otherwise.
    private func runFirst(_ sql: String, at place: Place) throws -> String {
        do { return try attempt(sql, at: place) } catch let strict as NotPrepared {
            try acceptDoubleQuotes(true)
            let rest: String
            do {
                rest = try attempt(sql, at: place)
                try acceptDoubleQuotes(false)
            } catch {
                try acceptDoubleQuotes(false)
                throw (error as? NotPrepared)?.error ?? error
            }
            warnings.add(
                .doubleQuotes, place,
                "a string in double quotes (\(strict.message)): SQL uses single quotes for strings and double quotes for "
                    + "names; this build accepts it, but not every SQLite does")
            return rest
        }
    }

    /// Sets whether text in double quotes that is not an identifier is treated as a string.
    func acceptDoubleQuotes(_ accept: Bool) throws {
        try connection.set(.doubleQuotedStringsInDML, accept)
        try connection.set(.doubleQuotedStringsInDDL, accept)
    }

    private struct NotPrepared: Error {
        let error: MoultError
        let message: String
    }

    private func attempt(_ sql: String, at place: Place) throws -> String {
        var isPrepared = false
        do {
            return try connection.withStatement(sql) { statement in
                isPrepared = true
                try show(statement)
                return String(statement.tail)
            }
        } catch {
            let failure = problem(error, sql, at: place)
            guard !isPrepared, let sqlite = error.sqlite else { throw failure }
            throw NotPrepared(error: failure, message: sqlite.message)
        }
    }

    /// Runs the statement and prints its rows like the shell.
    private func show(_ statement: borrowing Statement) throws {
        var isFirst = true
        while try statement.step() {
            let columns = 0..<statement.columnCount
            if isFirst, settings.showsHeaders {
                options.output(settings.line(statement.columnNames.map { Array($0.utf8) }))
            }
            isFirst = false
            var values: [[UInt8]?] = []
            for column in columns {
                let isNull = statement.isNull(column)
                // The shell prints C strings, which end at a NUL.
                values.append(isNull ? nil : try statement.withText(column) { Array($0.prefix { $0 != 0 }) })
            }
            options.output(settings.line(values))
        }
    }

    private func problem(_ error: any Error, _ sql: String, at place: Place) -> MoultError {
        guard let sqlite = error.sqlite else { return MoultError(.script, what: "\(place): \(error)", cause: error) }
        return MoultError(
            .script, what: "\(place): \(sqlite.message)", why: "in the statement \(shortened(Self.compact(sql)))",
            now: advice(sqlite) ?? (error as? MoultError)?.now, cause: error)
    }

    private func advice(_ error: SQLiteError) -> Advice? {
        if let advice = ShellOnly.advice(for: error.message) { return advice }
        if case .unauthorized = error.resultCode {
            return
                "Attach files by path instead of by URI, and load no extensions: a build reads only files in the directory of its script."
        }
        guard case .cannotOpen = error.resultCode, let refused = sandbox.refused else { return nil }
        if rule.allows(refused) { return "\(refused) is not a regular file: attach a database file." }
        return
            "\(refused) is not in the directory of the script, \(rule.root): move it there, or build with --allow-outside."
    }

    /// Returns the first words of the statement on one line, without leading comments.
    private static func compact(_ sql: String) -> String {
        var scanner = StatementScanner()
        var words: [UInt8] = []
        for byte in sql.utf8 {
            scanner.feed(byte)
            if !scanner.hasBegun { continue }
            let last = words.last ?? 0x20
            if isSpace(byte) { if last != 0x20 { words.append(0x20) } } else { words.append(byte) }
            if words.count > 1000 { break }
        }
        return String(decoding: words, as: UTF8.self).trimmed
    }
}
