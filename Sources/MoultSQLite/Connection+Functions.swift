import CSQLite
import MoultBasics

extension Connection {
    /// Removes every function that neither belongs to SQLite nor is declared harmless, and returns the names of the others.
    ///
    /// An app can have an extension that registers functions on each new connection of its process. The schema of a database
    /// must not be able to call them, and `trusted_schema = OFF` would also forbid SQLite's own JSON functions, which some
    /// versions do not declare harmless. A removed function counts as one that only the app has.
    ///
    /// `load_extension` cannot be removed, but every connection of moult turns it off.
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
    private static let searchFunctions: Set<String> = [
        "bm25", "highlight", "match", "matchinfo", "offsets", "snippet",
    ]
}
