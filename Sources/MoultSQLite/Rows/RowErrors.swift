package import MoultBasics

extension MoultError.Code {
    /// A row does not fit into the new schema, and the `preserve` entry refuses the update.
    package static let rowRejected = Self(420)
    /// A row has the same key as a row of the new content, and the `preserve` entry refuses the update.
    package static let rowConflict = Self(421)
    /// The schema uses a function, collation, module or tokenizer that only the app provides.
    package static let appExtension = Self(422)
    /// The new content violates a foreign key even without the carried rows.
    package static let shippedViolation = Self(423)
    /// A `preserve` entry uses a table, column or condition that does not exist or is not allowed.
    package static let selection = Self(424)
}

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
