import CSQLite
import MoultBasics

/// An action of a statement, or of its triggers, defaults and views, reported when the statement is prepared.
package enum StatementUse: Equatable, Sendable {
    /// The statement calls the function.
    case function(String)
    /// The statement changes or removes rows, or removes or changes part of the schema. `REPLACE` is not detected.
    case overwriting
}

/// Reports the actions of each statement when it is prepared.
final class UseWatch {
    let report: (StatementUse) -> Void

    init(_ report: @escaping (StatementUse) -> Void) { self.report = report }

    /// Installs this watch as the connection's authorizer. The connection must keep it alive.
    func install(on database: OpaquePointer) -> Int32 {
        sqlite3_set_authorizer(
            database,
            { context, action, first, second, _, _ in
                guard let context else { return SQLITE_DENY }
                let watch = Unmanaged<UseWatch>.fromOpaque(context).takeUnretainedValue()
                switch action {
                case SQLITE_FUNCTION:
                    if let second { watch.report(.function(String(cString: second))) }
                    return SQLITE_OK
                case SQLITE_UPDATE:
                    // When a statement creates something, SQLite itself updates the schema.
                    if let first, String(cString: first) != "sqlite_master" { watch.report(.overwriting) }
                    return SQLITE_OK
                case SQLITE_DELETE, SQLITE_ALTER_TABLE:
                    watch.report(.overwriting)
                    return SQLITE_OK
                case SQLITE_ATTACH:
                    // A parameter of a URI can select a VFS outside the connection's sandbox, and its name can be percent-encoded, so
                    // no URI is permitted. If the file name is an expression, its value is not known here.
                    guard let first else { return SQLITE_DENY }
                    return String(cString: first).hasBytePrefix("file:") ? SQLITE_DENY : SQLITE_OK
                case SQLITE_PRAGMA:
                    // These settings are those of the whole process, and name a directory outside the sandbox.
                    let name = first.map { String(cString: $0).lowercased() } ?? ""
                    return ["temp_store_directory", "data_store_directory"].contains(name) ? SQLITE_DENY : SQLITE_OK
                default: return SQLITE_OK
                }
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}

extension Connection {
    /// Calls the closure for each action of a statement, when the statement is prepared.
    package func watchUses(_ report: @escaping (StatementUse) -> Void) throws {
        let watch = UseWatch(report)
        try check(watch.install(on: handle), doing: "watch the statements on \(path)")
        useWatch = watch
    }
}
