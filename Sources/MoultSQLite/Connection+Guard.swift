import CSQLite
import MoultBasics

extension Connection {
    /// Opens a database that may be hostile: SQL in its schema must not reach anything outside it, and reading it must not take
    /// forever.
    ///
    /// Only SQLite's own functions can be called, no extension is loaded, damaged cells are detected, nothing is memory-mapped,
    /// and sizes are limited. Statements may only read, and all of them together must end within the deadline (in seconds from
    /// this call). The file's size must match the page count in its header. Other databases are attached only by `attach`,
    /// never by SQL.
    package static func openGuarded(
        path: String, access: Access, deadline: Double, busyTimeout: Int32 = 5000
    ) throws -> Connection {
        let connection = try Connection(path: path, access: access, busyTimeout: busyTimeout)
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
        try raise(Authorizer(.reading(functions: removeUnknownFunctions())))
    }

    /// Restricts statements to changes of this database: they may not touch other files, transactions or lasting settings, and
    /// may not load code. Their deadline starts now.
    package func raiseScriptGuard(deadline: Double) throws {
        try set(.defensive, true)
        try set(.loadExtension, false)
        try install(DeadlineWatch(seconds: deadline))
        try raise(Authorizer(.changing))
    }

    /// Removes the guard set by `raiseScriptGuard`.
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
}
