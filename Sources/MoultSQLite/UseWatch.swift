import CSQLite

/// Something that a statement does, told when it is prepared; what its triggers, defaults and views do included.
package enum StatementUse: Equatable, Sendable {
    /// It calls the function.
    case function(String)
    /// It changes or removes rows, or removes or changes something of the schema. `REPLACE` does not show here.
    case overwriting
}

/// Tells what statements do, as each is prepared.
final class UseWatch {
    let note: (StatementUse) -> Void

    init(_ note: @escaping (StatementUse) -> Void) { self.note = note }

    /// Sets the authorizer; the connection must keep the watch.
    func stand(on database: OpaquePointer) -> Int32 {
        sqlite3_set_authorizer(
            database,
            { context, action, first, second, _, _ in
                guard let context else { return SQLITE_DENY }
                let watch = Unmanaged<UseWatch>.fromOpaque(context).takeUnretainedValue()
                switch action {
                case SQLITE_FUNCTION:
                    if let second { watch.note(.function(String(cString: second))) }
                    return SQLITE_OK
                case SQLITE_UPDATE:
                    // To create something, SQLite itself updates the schema.
                    if let first, String(cString: first) != "sqlite_master" { watch.note(.overwriting) }
                    return SQLITE_OK
                case SQLITE_DELETE, SQLITE_ALTER_TABLE:
                    watch.note(.overwriting)
                    return SQLITE_OK
                case SQLITE_ATTACH:
                    // By naming a VFS a file could be opened past the connection's surroundings; an expression hides
                    // its text from us.
                    guard let first else { return SQLITE_DENY }
                    return String(cString: first).contains("vfs=") ? SQLITE_DENY : SQLITE_OK
                default: return SQLITE_OK
                }
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}

extension Connection {
    /// Calls the closure for all that statements do, when each is prepared.
    package func watchUses(_ note: @escaping (StatementUse) -> Void) throws {
        let watch = UseWatch(note)
        try check(watch.stand(on: handle), doing: "watch the statements on \(path)")
        useWatch = watch
    }
}
