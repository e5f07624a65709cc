import CLinux
import CSQLite
import MoultBasics
import MoultFiles
import MoultLibc

/// A connection to SQLite, used by one thread at a time. Every error is a `MoultError` that names the file, with a `SQLiteError`
/// as its cause (`error.sqlite`).
package final class Connection {
    /// The path as given, or that of the database of which the file is a copy.
    package let path: String
    package let interrupter: Interrupter
    private var database: OpaquePointer?
    private let forks = moult_fork_count()
    /// Whether this process is a child of the one that opened the connection, and must not use it: it has none of its locks.
    private var isOfParent: Bool { moult_fork_count() != forks }
    var watch: DeadlineWatch?
    /// The times of calls; nil for a connection that an app uses directly.
    private(set) var clock: CallClock?
    /// How long a statement waits for a lock, in milliseconds.
    var busyTimeout: Int32
    var valueLimit: Int32 = .max
    let stop = StatementStop.current
    var authorizer: Authorizer?
    var vfs: SandboxVFS?
    /// Reports the actions of statements when they are prepared, if `watchUses` was called.
    var useWatch: Authorizer?

    /// Opens the file at the path. Whether it is a database is known only after the first read. The connection limits the size of
    /// values and the time of a call (`ValueLimit`, `CallClock`), unless it is for an app, which runs statements of its own on
    /// it. `name` is the path that errors name, if the file is a copy.
    package convenience init(
        path: String, access: Access, busyTimeout: Int32 = 5000, isForApp: Bool = false, shownAs name: String? = nil
    ) throws {
        let uri = try access.uri(for: path)
        let file = try OpenableFile(path, access)
        try self.init(uri: uri, path: name ?? path, file: file, busyTimeout: busyTimeout, isForApp: isForApp)
        // A new file gets its content from a larger one.
        if !isForApp, access != .readWriteCreate { try limitValues(to: ValueLimit.of(file)) }
    }

    /// The file of a database, and what is known about it before SQLite opens it.
    struct OpenableFile {
        let path: String
        let facts: FileFacts?
        private let sidecars: Sidecars?

        /// Throws unless SQLite may open the file and its sidecars, and unless the path is free or has a regular file: SQLite would
        /// block forever on a pipe.
        init(_ path: String, _ access: Access) throws {
            let found = try Files.resolutionForOpening(path)
            (self.path, facts) = (found.path, found.facts)
            if let kind = facts?.kind, kind != .file {
                throw MoultError(
                    .databaseCorrupt, what: "\(path) is not a database",
                    why: kind == .directory ? "it is a directory" : "it is not a regular file")
            }
            // Advice has a path that still works when the directory is closed.
            let shown = PinnedDirectory.split(found.path) == nil ? found.path : path
            sidecars = try access == .immutable ? nil : Sidecars.requireOwn(shown)
        }

        /// The size of the file with its `-wal`, if SQLite reads one.
        var size: Int { (facts?.size ?? 0) + (sidecars?.wal?.facts.size ?? 0) }
    }

    /// Opens a new, empty in-memory database. Only databases with the same encoding can be attached to it.
    package static func inMemory(
        encoding: DatabaseHeader.TextEncoding? = nil, isForApp: Bool = false
    ) throws -> Connection {
        // An attached database waits for locks like any other.
        let connection = try Connection(uri: "file::memory:", path: ":memory:", busyTimeout: 5000, isForApp: isForApp)
        if !isForApp { try connection.limitValues(to: ValueLimit.smallest) }
        if let encoding, encoding != .utf8 { try connection.run("PRAGMA encoding = '\(encoding)'") }
        return connection
    }

    /// `file` is the file that the URI names, if it names one.
    /// `limit` is the number of seconds that a single call may take; nil for a limit that follows from the size of the file.
    init(
        uri: String, path: String, file: OpenableFile? = nil, busyTimeout: Int32, isForApp: Bool = false,
        limit: Double? = nil
    ) throws {
        (self.path, self.busyTimeout) = (path, busyTimeout)
        let handle = try Self.open(uri, path, file)
        database = handle
        interrupter = Interrupter(handle)
        if !isForApp {
            clock = CallClock(
                path: path, interrupter: interrupter, stop: stop,
                limit: limit ?? 600 + Double(file?.facts?.size ?? 0) / 1e6)
        }
        try installBusyHandler()
        // With this setting on, SQL could make SQLite call any address.
        try set(.fts3Tokenizer, false)
        guard let clock else { return }
        // Otherwise, a schema could not use functions that SQLite does not declare harmless, such as JSON in some versions.
        try set(.trustedSchema, true)
        try set(.loadExtension, false)
        try installProgressHandler()
        SQLWatchdog.add(clock)
    }

    /// Opens the database, and tries again if the path leads to another file after SQLite has opened it, because SQLite does
    /// not report which file it opened. An overlay file system changes the identity of a file once, when the file is first
    /// opened for writing.
    private static func open(_ uri: String, _ path: String, _ file: OpenableFile?) throws -> OpaquePointer {
        var before = file?.facts
        for _ in 0..<3 {
            let handle = try open(uri, path)
            guard let file, let known = before else { return handle }
            // Closing a handle without statements cannot fail.
            do {
                before = try Files.facts(file.path)
                if known.isSameFile(before) { return handle }
            } catch {
                sqlite3_close_v2(handle)
                throw error
            }
            sqlite3_close_v2(handle)
        }
        throw MoultError(
            .databaseBusy, .busy, what: "\(path) was replaced by another file while it was opened", now: "Try again.")
    }

    private static func open(_ uri: String, _ path: String) throws -> OpaquePointer {
        var handle: OpaquePointer?
        // The mode in the URI can only restrict these flags.
        let flags =
            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW
            | SQLITE_OPEN_NOMUTEX
        let code = try sqlite3_open_v2(uri, &handle, flags, ConnectionVFS.registeredName())
        guard code == SQLITE_OK, let handle else {
            let error = SQLiteError(ResultCode(code), on: handle, path: path)
            // A handle exists even if opening failed; closing one without statements cannot fail.
            sqlite3_close_v2(handle)
            throw MoultError(error, doing: "open database \(path)")
        }
        return handle
    }

    deinit {
        // Closing a connection of the parent would roll back the parent's transaction.
        guard let database, !isOfParent else { return }
        interrupter.disarm()
        if let clock { SQLWatchdog.remove(clock) }
        // This module's own statements and backups keep the connection alive. Statements that an app prepared through the
        // handle may outlive the connection, and must not call the connection's handlers then.
        sqlite3_progress_handler(database, 0, nil, nil)
        sqlite3_busy_handler(database, nil, nil)
        sqlite3_set_authorizer(database, nil, nil)
        sqlite3_close_v2(database)
    }

    package var isOpen: Bool { database != nil }

    /// SQLite's own handle, valid until `close()`.
    package var handle: OpaquePointer {
        get throws {
            guard let database else {
                throw MoultError(
                    .databaseRequest, what: "cannot use the connection to \(path)", why: "the connection is closed")
            }
            if isOfParent {
                throw MoultError(
                    .databaseRequest, what: "cannot use the connection to \(path)",
                    why: "it belongs to the parent process, which has its locks",
                    now: "Open a new connection in the program that the child starts.")
            }
            return database
        }
    }

    /// Closes the connection. If a statement or a backup still uses it, this fails and the connection stays open.
    package func close() throws {
        guard let database else { return }
        if isOfParent {
            self.database = nil
            return
        }
        interrupter.disarm()
        let code = sqlite3_close(database)
        guard code == SQLITE_OK else {
            interrupter.arm(database)
            var open: [String] = []
            var statement = sqlite3_next_stmt(database, nil)
            while let current = statement {
                open.append(sqlite3_sql(current).map { String(cString: $0) } ?? "?")
                statement = sqlite3_next_stmt(database, current)
            }
            throw MoultError(
                SQLiteError(ResultCode(code), on: database, path: path),
                doing: open.isEmpty
                    ? "close \(path)" : "close \(path) with statements open: \(open.joined(separator: "; "))")
        }
        self.database = nil
        if let clock { SQLWatchdog.remove(clock) }
    }

    /// Returns the error for a result code returned by this connection's last call.
    func failure(_ code: Int32, doing: String, sql: String? = nil) -> MoultError {
        let error = SQLiteError(ResultCode(code), on: database, path: path, sql: sql)
        if case .interrupt = error.resultCode {
            let limit = watch?.expired == true ? watch?.seconds : clock?.isExpired == true ? clock?.limit : nil
            if let limit { return DeadlineWatch.error(on: path, seconds: limit, cause: error) }
        }
        var thrown = MoultError(error, doing: doing)
        if case .tooBig = error.resultCode, valueLimit != .max { thrown = tooBig(thrown) }
        if let denied = authorizer?.denied {
            thrown.code = .guarded
            thrown.outcome = .refused
            thrown.why = authorizer?.reason(denied)
        }
        return thrown
    }

    func check(_ code: Int32, doing: String, sql: String? = nil) throws {
        guard code == SQLITE_OK else { throw failure(code, doing: doing, sql: sql) }
    }
}

extension Connection {
    package enum Limit: Int32, Sendable, CaseIterable {
        case length = 0
        case sqlLength = 1
        case columns = 2
        case expressionDepth = 3
        case compoundSelect = 4
        case programLength = 5
        case functionArguments = 6
        case attached = 7
        case likePatternLength = 8
        case variables = 9
        case triggerDepth = 10
        case workerThreads = 11
    }

    /// SQLite's on/off settings for a connection.
    package enum Switch: Int32, Sendable {
        case foreignKeys = 1002
        case triggers = 1003
        case fts3Tokenizer = 1004
        case loadExtension = 1005
        case noCheckpointOnClose = 1006
        case defensive = 1010
        case writableSchema = 1011
        case doubleQuotedStringsInDML = 1013
        case doubleQuotedStringsInDDL = 1014
        case trustedSchema = 1017
    }

    package func limit(_ which: Limit) throws -> Int32 { sqlite3_limit(try handle, which.rawValue, -1) }

    /// Changes a limit, up to SQLite's compile-time maximum.
    package func setLimit(_ which: Limit, to value: Int32) throws { sqlite3_limit(try handle, which.rawValue, value) }

    package func set(_ which: Switch, _ on: Bool) throws {
        var now: Int32 = -1
        try check(
            moult_sqlite_db_config(try handle, which.rawValue, on ? 1 : 0, &now), doing: "set \(which) on \(path)")
        guard now == (on ? 1 : 0) else {
            throw MoultError(.sqlite, what: "cannot set \(which) on \(path)", why: "SQLite did not change the setting")
        }
    }

    package func isOn(_ which: Switch) throws -> Bool {
        var now: Int32 = -1
        // A negative value reads the setting without changing it.
        try check(moult_sqlite_db_config(try handle, which.rawValue, -1, &now), doing: "read \(which) of \(path)")
        return now == 1
    }

    /// Runs the body with a switch on or off, and restores the switch afterwards.
    package func with<R>(_ which: Switch, _ on: Bool, _ body: () throws -> R) throws -> R {
        let before = try isOn(which)
        guard before != on else { return try body() }
        try set(which, on)
        let result = Result { try body() }
        try set(which, before)
        return try result.get()
    }
}

extension SQLiteError {
    /// Creates the error for a result code, with the handle's message if its last call returned the code.
    init(_ code: ResultCode, on database: OpaquePointer?, path: String, sql: String? = nil) {
        // The handle's message belongs to its last call. Any other code gets SQLite's general text.
        let isLast = database != nil && sqlite3_extended_errcode(database) == code.rawValue
        let text = isLast ? sqlite3_errmsg(database) : sqlite3_errstr(code.rawValue)
        var message = text.map { String(cString: $0) } ?? "unknown error"
        let systemError = database == nil ? 0 : sqlite3_system_errno(database)
        switch code {
        case .cannotOpen, .ioError, .full:
            if systemError != 0, let text = strerror(systemError) { message += ": \(String(cString: text))" }
        default: break
        }
        self.init(resultCode: code, message: message, sql: sql, path: path, systemError: systemError)
    }
}
