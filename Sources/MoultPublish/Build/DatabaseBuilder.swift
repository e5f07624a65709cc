internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import Synchronization

/// Builds a database from a script and the files next to it: the same inputs give the same bytes.
package struct DatabaseBuilder {
    let options: BuildOptions

    package init(_ options: BuildOptions = BuildOptions()) { self.options = options }

    /// Runs the script and writes the complete database durably to `output`; after an error, `output` is unchanged.
    package func build(script: String, output: String) throws -> BuildReport {
        let kind = try Files.factsThroughLinks(script)?.kind
        guard kind == .file else {
            throw MoultError(
                .script, what: "cannot read the script \(script)",
                why: kind == nil ? "no such file" : "it is not a regular file", now: "Specify a file with SQL.")
        }
        if let old = options.from { try Evolution.check(old) }
        let clock = try fixedClock()
        let rule = try PathRule(script: script, allowsOutside: options.allowOutside)
        let scriptPath = try Files.resolved(script)
        let outputStaging = try OutputStaging(output: output)
        defer { outputStaging.remove() }

        let warnings = WarningLimiter(options.warn)
        let sandbox = try SandboxVFS(
            directory: rule.root, writable: outputStaging.directoryInSQLite, clock: clock, mayRead: rule.allowsOpening)
        let connection = try Connection(path: outputStaging.draft, access: .readWriteCreate, in: sandbox)
        let stopper = try options.shouldStop.map { try Stopper(connection.interrupter, when: $0) }
        defer { stopper?.end() }
        let substitution = Substitution(
            defines: options.defines, environment: options.environment, directory: rule.root)
        let runner = try ScriptRunner(
            connection: connection, sandbox: sandbox, rule: rule, substitution: substitution,
            options: options, warnings: warnings)
        try prepare(connection)
        try runner.acceptDoubleQuotes(false)
        try runner.run(path: scriptPath, file: script)
        // The schema may now contain strings in double quotes that were accepted in the script.
        try runner.acceptDoubleQuotes(true)
        try complete(connection, script: script)
        let sqlite = try connection.query("SELECT sqlite_version(), sqlite_source_id()").first ?? []
        let layout = try seal(connection, outputStaging, warnings, onlyGrew: runner.onlyGrew)
        warnings.flush(WarningLimiter.Kind.ofScripts, of: script)
        let size = try outputStaging.deliver(inputs: runner.inputs)
        return BuildReport(
            output: output, size: size,
            inputs: (runner.inputs.union(try options.from.map { [try Files.resolved($0)] } ?? [])).sorted(),
            imports: runner.imports, layout: layout,
            sqliteVersion: sqlite.first?.text ?? "", sqliteSource: sqlite.last?.text ?? "",
            revision: substitution.revision, unrepeatable: runner.unrepeatable, warnings: warnings.total)
    }

    /// Returns the time from SOURCE_DATE_EPOCH to which every clock is set; nil without that variable.
    private func fixedClock() throws -> Int64? {
        guard let text = options.environment["SOURCE_DATE_EPOCH"] else { return nil }
        // The last second of the year 9999, which is the last one that SQLite's date functions support.
        guard let seconds = Int64(text), (0...253_402_300_799).contains(seconds) else {
            throw MoultError(
                .script, .usage, what: "invalid SOURCE_DATE_EPOCH=\(text)",
                why: "the value must be the number of seconds since 1970-01-01",
                now: "Unset the variable, or set it to the output of `git log -1 --format=%ct`.")
        }
        return seconds
    }

    /// Sets the pragmas for building. The database under construction needs no durability, and a small cache makes writing
    /// fastest: with a larger cache, SQLite sorts in longer runs, which are slow.
    private func prepare(_ connection: Connection) throws {
        for sql in [
            "PRAGMA journal_mode = PERSIST", "PRAGMA synchronous = OFF", "PRAGMA locking_mode = EXCLUSIVE",
            "PRAGMA secure_delete = ON", "PRAGMA cache_size = -2000", "PRAGMA threads = 2",
        ] { try connection.execute(sql) }
    }

    private func complete(_ connection: Connection, script: String) throws {
        guard try !connection.isInTransaction else {
            throw MoultError(
                .script, what: "\(script): the script ends inside a transaction",
                why: "a BEGIN or SAVEPOINT has no COMMIT or RELEASE, so its changes would be lost",
                now: "Add the statement COMMIT; at the end of the script.")
        }
        if options.analyze { try connection.execute("ANALYZE") }
        if let id = options.applicationID { try connection.execute("PRAGMA application_id = \(id)") }
        if let version = options.userVersion { try connection.execute("PRAGMA user_version = \(version)") }
    }

    private func seal(
        _ connection: Connection, _ outputStaging: OutputStaging, _ warnings: WarningLimiter, onlyGrew: Bool
    ) throws -> BuildReport.Layout {
        try options.progress(PackProgress(what: "make the database read-only"))
        var reason: String?
        if let old = options.from {
            try connection.close()
            switch try Evolution(old: old, new: outputStaging.draft, result: outputStaging.sealed).run() {
            case .evolved(let changes, let free, let pages):
                if free * 5 > pages {
                    warnings.add(
                        .note, nil,
                        "\(free) of \(pages) pages are free because rows were removed: to compact the database, build it once without --from"
                    )
                }
                return .kept(changes)
            case .unfit(let why):
                try Files.remove(outputStaging.sealed)
                warnings.add(.note, nil, "the layout of \(old) is not kept: \(why)")
                reason = why
            }
        }
        let draft = try reason == nil ? connection : Connection(path: outputStaging.draft, access: .readWrite)
        if try reason == nil && onlyGrew && Self.isPacked(draft) {
            _ = try draft.query("PRAGMA journal_mode = DELETE")
            try draft.close()
            try Files.rename(outputStaging.draft, to: outputStaging.sealed)
            return .asWritten
        }
        _ = try draft.query("VACUUM INTO ?1", [.text(outputStaging.sealed)])
        try draft.close()
        return reason.map { .repacked(because: $0) } ?? .vacuumed
    }

    /// The minimum size in bytes: for smaller databases, the check is not worthwhile.
    private static let minCheckedSize = 8 << 20

    /// Returns whether the database is as compact as after VACUUM, if rows were only added to it: rewriting it would cost a fifth
    /// of the build. It also has the same bytes in every build, whereas changed or removed rows leave remainders in pages.
    private static func isPacked(_ connection: Connection) throws -> Bool {
        let pages = try connection.int("PRAGMA page_count")
        let size = try connection.int("PRAGMA page_size") * pages
        guard size >= minCheckedSize, try connection.int("PRAGMA freelist_count") == 0,
            try connection.int("PRAGMA auto_vacuum") == 0,
            try connection.int("SELECT count(*) FROM pragma_module_list WHERE name = 'dbstat'") == 1
        else { return false }
        // Rows that do not fit leave some space at the ends of pages, even after VACUUM; pages that were split are a
        // third empty.
        return try connection.int("SELECT sum(unused) FROM dbstat") * 16 <= size
    }

    /// Stops the statement of a connection when the user cancels: SQLite does not call a progress handler while it creates
    /// an index.
    final class Stopper: Sendable {
        private let isOver = Atomic(false)

        /// Checks ten times a second on a separate thread, until `end`.
        init(_ interrupter: Interrupter, when shouldStop: @escaping @Sendable () -> Bool) throws {
            try Threads.detach { [self] in
                while !isOver.load(ordering: .relaxed) {
                    // Interrupts repeatedly, because the statement may just have ended, and the next one started.
                    if shouldStop() { interrupter.interrupt() }
                    usleep(100_000)
                }
            }
        }

        func end() { isOver.store(true, ordering: .relaxed) }
    }
}

extension Value {
    var text: String? {
        if case .text(let text) = self { return text }
        return nil
    }
}
