internal import MoultBasics
import MoultSQLite

extension Connection {
    /// Runs the body. An error about a function, collation, module or tokenizer unknown to SQLite gets its own code.
    func namingAppExtensions<R>(_ doing: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError {
            guard let missing = error.sqlite?.missingExtension else { throw error }
            throw MoultError(
                .appExtension, .refused, what: "cannot \(doing)",
                why: "the schema of \(error.sqlite?.path ?? path) needs \(missing), which only the app provides",
                now: "Remove it from the tables that the app writes to, then publish the release again.", cause: error)
        }
    }
}

extension SQLiteError {
    /// The extension that the schema needs and this SQLite lacks; nil for any other error. SQLite has no result code for
    /// missing extensions.
    var missingExtension: String? {
        let kinds = [
            ("no such function: ", "the function"), ("unknown function: ", "the function"),
            ("no such collation sequence: ", "the collation"), ("no such module: ", "the module"),
            ("no such tokenizer: ", "the tokenizer"), ("unknown tokenizer: ", "the tokenizer"),
        ]
        for (prefix, kind) in kinds where message.hasPrefix(prefix) {
            return "\(kind) \(message.dropFirst(prefix.count))"
        }
        return nil
    }
}
