import CSQLite
import MoultBasics

/// SQLite's run-time limits.
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

extension Connection {
    /// Returns the current value of a limit.
    package func limit(_ which: Limit) throws -> Int32 { sqlite3_limit(try handle, which.rawValue, -1) }

    /// Changes a limit, up to SQLite's compile-time maximum.
    package func setLimit(_ which: Limit, to value: Int32) throws {
        sqlite3_limit(try handle, which.rawValue, value)
    }

    /// Turns a switch on or off.
    package func set(_ which: Switch, _ on: Bool) throws {
        var now: Int32 = -1
        try check(
            moult_sqlite_db_config(try handle, which.rawValue, on ? 1 : 0, &now), doing: "set \(which) on \(path)")
        guard now == (on ? 1 : 0) else {
            throw MoultError(.sqlite, what: "cannot set \(which) on \(path)", why: "SQLite did not change the setting")
        }
    }

    /// Returns whether a switch is on.
    package func isOn(_ which: Switch) throws -> Bool {
        var now: Int32 = -1
        // A negative value reads the setting without changing it.
        try check(
            moult_sqlite_db_config(try handle, which.rawValue, -1, &now), doing: "read \(which) of \(path)")
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

    /// Returns whether this connection can only read the database.
    package func isReadOnly(_ schema: String = "main") throws -> Bool {
        switch sqlite3_db_readonly(try handle, schema) {
        case 0: return false
        case 1: return true
        default:
            throw MoultError(.databaseRequest, what: "no database `\(schema)` is attached to \(path)")
        }
    }
}
