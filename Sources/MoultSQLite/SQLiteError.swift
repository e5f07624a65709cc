package import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// An error with SQLite's own message: the cause of the `MoultError` that this module throws for a failed call. It never contains
/// values bound to the statement, because they may be user data.
package struct SQLiteError: Error, Sendable, CustomStringConvertible {
    package var resultCode: ResultCode
    package var message: String
    package var sql: String?
    package var path: String
    /// The system's error number, or 0.
    var systemError: Int32 = 0

    package var description: String {
        var text = "\(path): \(message) (\(resultCode))"
        if let sql { text += " in: \(sql)" }
        return text
    }
}

extension SQLiteError {
    /// Whether the file exists, but another process has just created or removed a sidecar that SQLite looked for.
    fileprivate var isRace: Bool {
        guard case .cannotOpen = resultCode, [0, ENOENT, EEXIST].contains(systemError) else { return false }
        // These statements open another file.
        let first = (sql ?? "").prefix { $0.isLetter }.uppercased()
        if ["ATTACH", "VACUUM"].contains(first) { return false }
        // If the file cannot be examined, the error is about that.
        return (try? Files.factsThroughLinks(path)?.kind) == .some(.file)
    }

    /// The permission that this user lacks to open the file or one of its sidecars; nil if that is not the cause.
    fileprivate var missingPermission: Permission? {
        guard case .cannotOpen = resultCode else { return nil }
        return ([path] + Sidecars.beside(path)).map { Permission.write($0) }.first { need in
            // A sidecar that is missing cannot deny access.
            need.deniesReading
        }
    }
}

extension MoultError {
    /// Whether the error concerns the access to a database, such as a lock, a permission or a failing disk, and so says nothing
    /// about its content. Such an error is never a reason to set the database aside.
    package var isAboutAccess: Bool {
        outcome == .busy || Files.isDenied(self)
            || [.databaseReadOnly, .databaseIO, .cannotOpenDatabase, .interrupted].contains(code)
    }
}

extension MoultError {
    /// Creates the error for a `SQLiteError`: `cannot <doing>`, the reason, and the next step. If this user may not open a file,
    /// the error is about the missing permission, and not about the content of the file.
    package init(_ error: SQLiteError, doing: String) {
        if let need = error.missingPermission {
            self = Errno.denied.error("cannot \(doing)", need)
            return
        }
        let (code, outcome, now) = Self.meaning(of: error)
        var why = "\(error.message) (\(error.resultCode))"
        if let sql = error.sql, !Self.isOwn(sql) { why += " in: \(shortened(sql))" }
        self.init(code, outcome, what: "cannot \(doing)", why: why, now: now, cause: error)
    }

    private static func meaning(of error: SQLiteError) -> (Code, Outcome, now: Advice?) {
        switch error.resultCode {
        case .busy, .locked:
            (
                .databaseBusy, .busy,
                "Another connection holds a lock on \(error.path): try again when it has released the lock."
            )
        case .corrupt, .notADatabase: (.databaseCorrupt, .failed, nil)
        case .readOnlyMoved:
            (.databaseBusy, .busy, "The file was replaced while it was open: close and open \(error.path) again.")
        case .readOnlyRecovery, .readOnlyCannotLock, .readOnlyRollback, .readOnlyCannotInitialize, .lockingProtocol:
            (
                .databaseBusy, .busy,
                "Another process may be opening or recovering \(error.path): try again. Otherwise, open it once with write access."
            )
        case .readOnlyDirectory:
            (
                .databaseReadOnly, .failed,
                "SQLite cannot write a journal: allow this user to write to the directory of \(error.path)."
            )
        case .readOnly: (.databaseReadOnly, .failed, nil)
        case .full: (.databaseIO, .failed, "Free some space on the file system of \(error.path), then try again.")
        // SQLite has no separate code for an exceeded size limit, and does not keep the system's error code.
        case .ioErrorWrite where Subprocess.hasFileSizeLimit: (.databaseIO, .failed, Errno.fileSizeAdvice)
        case .ioError: (.databaseIO, .failed, nil)
        case .cannotOpen where error.isRace:
            (.databaseBusy, .busy, "Another process is opening or closing \(error.path): try again.")
        case .cannotOpen: (.cannotOpenDatabase, .failed, nil)
        case .constraint: (.constraint, .failed, nil)
        case .unauthorized: (.guarded, .refused, nil)
        case .noMemory:
            (
                .sqlite, .failed,
                "SQL of a database needs much more memory than the database has bytes: find the generated columns, indexes or triggers that "
                    + "do, and change them with the app or with sqlite3."
            )
        default: (.sqlite, .failed, nil)
        }
    }

    /// Returns whether moult wrote the statement, rather than the reader of the error.
    private static func isOwn(_ sql: String) -> Bool {
        let first = sql.prefix { $0.isLetter }.uppercased()
        return ["ATTACH", "BEGIN", "COMMIT", "DETACH", "PRAGMA", "RELEASE", "ROLLBACK", "SAVEPOINT", "VACUUM"].contains(
            first)
    }
}

extension Error {
    package var sqlite: SQLiteError? {
        if let error = self as? SQLiteError { return error }
        return (self as? MoultError)?.cause?.sqlite
    }
}
