import CSQLite
import MoultBasics

extension Connection {
    /// Opens a database that may be hostile: SQL in its schema must not reach anything outside it, and reading it must not take
    /// forever. Only SQLite's own functions can be called, no extension is loaded, damaged cells are detected, nothing is
    /// memory-mapped, and sizes are limited. Statements may only read, and all of them together must end within the deadline (in
    /// seconds from this call). The file's size must match the page count in its header. Other databases are attached only by
    /// `attach`, never by SQL.
    package static func openGuarded(path: String, access: Access, deadline: Double) throws -> Connection {
        let connection = try Connection(path: path, access: access)
        try connection.raiseGuard(deadline: deadline)
        // With `immutable`, SQLite ignores a `-wal`.
        if access == .immutable {
            try connection.header().requireSize(connection.fileSize(), path: path)
        } else {
            try connection.requireSize()
        }
        // Makes SQLite read the first page, and fail if the file is not a database.
        _ = try connection.int("PRAGMA schema_version")
        return connection
    }

    /// Makes this a guarded connection permanently; its deadline starts now.
    package func raiseGuard(deadline: Double) throws {
        try set(.defensive, true)
        try set(.loadExtension, false)
        try set(.triggers, false)
        try execute("PRAGMA cell_size_check = 1; PRAGMA mmap_size = 0; PRAGMA query_only = 1")
        for (limit, value) in Self.guardLimits { try setLimit(limit, to: value) }
        try install(DeadlineWatch(seconds: deadline))
        try raise(.reading(functions: removeUnknownFunctions()))
    }

    /// Restricts statements to changes of this database: they may not touch other files, transactions or lasting settings, and
    /// may not load code. Their deadline starts now.
    package func raiseScriptGuard(deadline: Double) throws {
        try set(.defensive, true)
        try set(.loadExtension, false)
        try install(DeadlineWatch(seconds: deadline))
        try raise(.changing())
    }

    package func lowerScriptGuard() throws {
        try install(nil)
        try check(sqlite3_set_authorizer(try handle, nil, nil), doing: "guard \(path)")
        authorizer = nil
    }

    private func raise(_ authorizer: Authorizer) throws {
        try check(authorizer.install(on: handle), doing: "guard \(path)")
        self.authorizer = authorizer
    }

    /// Limits far above what honest schemas need, and far below what exhausts a machine.
    private static let guardLimits: [(Limit, Int32)] = [
        (.sqlLength, 1 << 20), (.columns, 2000), (.expressionDepth, 200), (.compoundSelect, 100),
        (.programLength, 2_000_000), (.functionArguments, 100), (.attached, 10), (.likePatternLength, 1000),
        (.variables, 1000), (.triggerDepth, 10), (.workerThreads, 0),
    ]

    // MARK: functions

    /// Removes every function that neither belongs to SQLite nor is declared harmless, and returns the names of the others. An
    /// app can have an extension that registers functions on each new connection of its process. The schema of a database must
    /// not be able to call them, and `trusted_schema = OFF` would also forbid SQLite's own JSON functions, which some versions do
    /// not declare harmless. A removed function counts as one that only the app has. `load_extension` cannot be removed, but
    /// every connection of moult turns it off.
    func removeUnknownFunctions() throws -> Set<String> {
        var usable: Set<String> = []
        for row in try query("PRAGMA function_list") {
            guard case .text(let name) = row[0], case .text(let encoding) = row[3], case .integer(let count) = row[4],
                case .integer(let flags) = row[5]
            else { continue }
            let isOwn = row[1] == .integer(1)
            // SQLite does not call the authorizer for a CHECK, and 3.40 calls even functions there that are not for schemas.
            let isForSchemas = flags & Int64(SQLITE_DIRECTONLY) == 0
            if isForSchemas, isOwn || flags & Int64(SQLITE_INNOCUOUS) != 0 || Self.searchFunctions.contains(name) {
                usable.insert(asciiLowercased(name))
            } else if !isOwn {
                try remove(name, Int32(clamping: count), encoding)
            }
        }
        return usable
    }

    private func remove(_ name: String, _ arguments: Int32, _ encoding: String) throws {
        let encodings = ["utf16le": SQLITE_UTF16LE, "utf16be": SQLITE_UTF16BE]
        try check(
            sqlite3_create_function_v2(
                handle, name, arguments, encodings[encoding] ?? SQLITE_UTF8, nil, nil, nil, nil, nil),
            doing: "guard \(path)")
    }

    /// The functions of the full-text modules for queries, which SQLite registers without declaring them harmless.
    private static let searchFunctions: Set<String> = ["bm25", "highlight", "match", "matchinfo", "offsets", "snippet"]
}
