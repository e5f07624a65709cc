internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// Runs a script on the database that is being built.
final class ScriptRunner {
    let connection: Connection
    let sandbox: SandboxVFS
    let rule: PathRule
    let substitution: Substitution
    let options: BuildOptions
    let warnings: WarningLimiter
    var settings = ScriptSettings()
    var inputs: Set<String> { read.union(sandbox.opened) }
    /// Scripts, and the files that they import.
    private var read: Set<String> = []
    private(set) var imports: [BuildReport.Import] = []
    private(set) var unrepeatable: [String] = []
    /// Whether no written row has been changed or removed.
    private(set) var onlyGrew = true
    /// The nesting depth of the scripts that are being read.
    private var depth = 0
    private var isDone = false
    /// The functions used by the last statement.
    private var functions: Set<String> = []

    /// The maximum nesting depth, the same as in the shell.
    private static let maxDepth = 25

    init(
        connection: Connection, sandbox: SandboxVFS, rule: PathRule, substitution: Substitution,
        options: BuildOptions, warnings: WarningLimiter
    ) throws {
        (self.connection, self.sandbox, self.rule) = (connection, sandbox, rule)
        (self.substitution, self.options, self.warnings) = (substitution, options, warnings)
        try connection.watchUses { [weak self] in
            self?.functions.insert($0.lowercased())
        } overwriting: { [weak self] in
            self?.onlyGrew = false
        }
    }

    /// Runs the file at the path; messages use the name `file`.
    func run(path: String, file: String, from place: Place? = nil) throws {
        guard depth < Self.maxDepth else {
            throw MoultError(
                .script, what: "\(place ?? Place(file: file, line: 1)): .read is nested \(Self.maxDepth) deep",
                why: "a script that reads itself never ends")
        }
        depth += 1
        defer {
            depth -= 1
            isDone = false
        }
        read.insert(path)
        let reader = try ScriptReader(path: path, file: file) { [substitution] in try substitution.value(of: $0, at: $1)
        }
        while !isDone, let item = try reader.next() {
            do { try run(item, source: reader.source) } catch let error where !settings.bails && error.isCausedByScript
            { warnings.add(.failedStatement, nil, "\(error)") }
        }
    }

    private func run(_ item: ScriptItem, source: [UInt8]) throws {
        if settings.echoes { options.output(source) }
        switch item {
        case .blank: break
        case .command(let command): try run(command)
        case .sql(let statements): for statement in statements { try run(statement) }
        }
    }

    func finish() { isDone = true }

    func importRows(_ command: DotCommand) throws {
        let request = try ImportRequest(command)
        let path = try rule.resolve(request.file, at: command.place)
        let importer = Importer(
            connection: connection, warnings: warnings, request: request, format: try request.format ?? format(command),
            path: path, file: rule.shown(request.file), place: command.place, bails: settings.bails,
            skipsEmpty: settings.mode == .ascii, progress: options.progress)
        read.insert(path)
        let count = try observing(command.place, "") { try importer.run() }
        imports.append(.init(file: path, table: request.table, rows: count.rows))
        if request.isVerbose {
            options.output(Array("Added \(count.rows) rows with \(count.failed) errors from \(importer.file)\n".utf8))
        }
    }

    private func format(_ command: DotCommand) throws -> RowFormat {
        do { return try settings.importFormat() } catch {
            throw MoultError(
                .script, what: "\(command.place): .import cannot read rows", why: error.why,
                now: "Set one-byte separators with .mode csv and .separator, or use .import --csv.")
        }
    }

    /// Runs the body, and records whether its result depends on more than the inputs.
    func observing<R>(_ place: Place, _ sql: String, _ body: () throws -> R) throws -> R {
        functions = []
        sandbox.refused = nil
        let before = sandbox.clockReads
        let result = try body()
        func warn(_ what: String, _ advice: Advice) {
            unrepeatable.append("\(place): \(what)")
            warnings.add(.unrepeatable, place, "\(what), so the next build gives a different result; \(advice)")
        }
        for name in functions.intersection(["random", "randomblob"]).sorted() {
            warn("\(name)() returns different values each time", "compute them before the build")
        }
        if sandbox.clockReads > before, sandbox.clock == nil {
            warn("the statement uses the current time", "set SOURCE_DATE_EPOCH, or write a fixed date")
        }
        // `watchUses` does not report these two. REPLACE may remove rows, and a page size that is set late takes effect only
        // with the next VACUUM.
        if mentions("replace", sql) || mentions("page_size", sql) { onlyGrew = false }
        if mentions("localtime", sql) { warn("localtime depends on the time zone of this machine", "use UTC") }
        return result
    }

    /// A dot command that a build script may use.
    private enum Command: String, CaseIterable {
        case bail, echo, exit, headers
        case `import`
        case mode, nullvalue, print, quit, read, separator
    }

    func run(_ line: DotCommand) throws {
        try options.progress(PackProgress(what: "\(line.place)"))
        guard let command = Self.command(line.name) else { throw unknown(line) }
        switch command {
        case .bail: settings.bails = try flag(line)
        case .echo: settings.echoes = try flag(line)
        case .headers: settings.showsHeaders = try flag(line)
        case .import: try importRows(line)
        case .mode: try setMode(line)
        case .nullvalue: settings.nullValue = try only(line, "STRING")
        case .print: options.output(Array(line.arguments.joined(separator: [0x20])) + [0x0A])
        case .read:
            let names = try line.names
            guard names.count == 1 else { throw usage(line, ".read FILE") }
            let name = names[0]
            let path = try rule.resolve(name, at: line.place)
            try run(path: path, file: rule.shown(name), from: line.place)
        case .separator:
            let words = try line.texts
            guard (1...2).contains(words.count) else { throw usage(line, ".separator COL [ROW]") }
            settings.column = line.arguments[0]
            if words.count == 2 { settings.row = line.arguments[1] }
        case .exit, .quit:
            guard line.arguments.isEmpty else { throw usage(line, ".\(command.rawValue), without a status") }
            finish()
        }
    }

    /// Returns the command with this name or prefix: three letters are enough, as in the shell. Nil if no command matches.
    private static func command(_ name: String) -> Command? {
        Command(rawValue: name) ?? (name.count < 3 ? nil : Command.allCases.first { $0.rawValue.hasPrefix(name) })
    }

    private func setMode(_ line: DotCommand) throws {
        let name = String(decoding: try only(line, "ascii|csv|list|tabs"), as: UTF8.self)
        if settings.setMode(name) { return }
        throw MoultError(
            .script, what: "\(line.place): .mode \(name) is not supported",
            why: "the supported modes are \(ScriptSettings.modes.joined(separator: ", "))",
            now: didYouMean(name, among: ScriptSettings.modes))
    }

    private func flag(_ line: DotCommand) throws -> Bool {
        let word = String(decoding: try only(line, "on|off"), as: UTF8.self).lowercased()
        switch word {
        case "on", "yes", "1": return true
        case "off", "no", "0": return false
        default: throw usage(line, ".\(line.name) on|off")
        }
    }

    private func only(_ line: DotCommand, _ form: String) throws -> [UInt8] {
        guard try line.texts.count == 1 else { throw usage(line, ".\(line.name) \(form)") }
        return line.arguments[0]
    }

    private func usage(_ line: DotCommand, _ form: String) -> MoultError {
        MoultError(.script, what: "\(line.place): invalid .\(line.name) command", now: "Usage: \(form)")
    }

    private func unknown(_ line: DotCommand) -> MoultError {
        let known = Command.allCases.map(\.rawValue)
        let list = known.map { ".\($0)" }.joined(separator: ", ")
        let hint: Advice? =
            switch line.name {
            case "open", "save", "backup", "clone", "restore": "The option -o specifies the database; remove this line."
            case "once", "output", "excel": "A build prints to standard output; remove this line."
            case "shell", "system": "A script that runs other programs is not repeatable; run them before the build."
            case "cd": "Paths are relative to the script; include the directory in each path."
            case "load": "moult cannot build a database that needs an extension. Remove this line."
            default: didYouMean(line.name, among: known)
            }
        return MoultError(
            .script, what: "\(line.place): unknown command .\(line.name)", why: "a build supports only \(list)",
            now: hint)
    }

    func run(_ statement: ScriptStatement) throws {
        try options.progress(PackProgress(what: "\(statement.place)"))
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

/// Returns whether SQL contains a word, ignoring case, even inside a string or a longer word.
private func mentions(_ word: StaticString, _ sql: String) -> Bool {
    let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
    var sql = sql
    // Hand-written, because a search with the standard library takes longer than SQLite takes to insert a row.
    return sql.withUTF8 { sql in
        guard sql.count >= word.count else { return false }
        func has(_ index: Int, at place: Int) -> Bool {
            let byte = sql[place + index]
            return ((65...90).contains(byte) ? byte | 0x20 : byte) == word[index]
        }
        return (0...sql.count - word.count).contains { place in
            has(0, at: place) && (1..<word.count).allSatisfy { has($0, at: place) }
        }
    }
}

extension Error {
    /// Whether the error is caused by the script or the data, not by the disk, so that other statements or rows may
    /// succeed.
    var isCausedByScript: Bool {
        if let error = self as? MoultError, [.script, .importing].contains(error.code), error.sqlite == nil {
            return true
        }
        return switch sqlite?.resultCode {
        case .error?, .constraint?, .mismatch?, .tooBig?, .range?, .unauthorized?: true
        default: false
        }
    }
}
