import CSQLite

/// Tells which functions the statements use, their triggers, defaults and views included, as each is prepared.
final class UseWatch {
    let note: (String) -> Void

    init(_ note: @escaping (String) -> Void) { self.note = note }

    /// Sets the authorizer; the connection must keep the watch.
    func stand(on database: OpaquePointer) -> Int32 {
        sqlite3_set_authorizer(
            database,
            { context, action, first, second, _, _ in
                guard let context else { return SQLITE_DENY }
                switch action {
                case SQLITE_FUNCTION:
                    let watch = Unmanaged<UseWatch>.fromOpaque(context).takeUnretainedValue()
                    if let second { watch.note(String(cString: second)) }
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
    /// Calls the closure with the name of every function that a statement uses, when the statement is prepared.
    package func watchFunctions(_ note: @escaping (String) -> Void) throws {
        let watch = UseWatch(note)
        try check(watch.stand(on: handle), doing: "watch the statements on \(path)")
        useWatch = watch
    }
}
