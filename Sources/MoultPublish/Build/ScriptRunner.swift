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
    /// Every file that was read, including attached databases.
    var inputs: Set<String> { read.union(sandbox.opened) }
    /// Scripts, and the files that they import.
    private var read: Set<String> = []
    private(set) var imports: [BuildReport.Import] = []
    /// Why a second run may give a different result.
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
        let reader = try ScriptReader(path: path, file: file) { [substitution] in
            try substitution.value(of: $0, at: $1)
        }
        while !isDone, let item = try reader.next() {
            do {
                try run(item, source: reader.source)
            } catch let error where !settings.bails && error.isCausedByScript {
                warnings.add(.failedStatement, nil, "\(error)")
            }
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

    /// Skips the remaining lines of the current file.
    func finish() { isDone = true }

    func importRows(_ command: DotCommand) throws {
        let request = try ImportRequest(command)
        let path = try rule.resolve(request.file, at: command.place)
        let importer = Importer(
            connection: connection, warnings: warnings, request: request,
            format: try request.format ?? format(command), path: path, file: rule.shown(request.file),
            place: command.place, bails: settings.bails, skipsEmpty: settings.mode == .ascii,
            progress: options.progress)
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
        if mentions("localtime", sql) {
            warn("localtime depends on the time zone of this machine", "use UTC")
        }
        return result
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
