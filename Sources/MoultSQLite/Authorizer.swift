import CSQLite
package import MoultBasics

/// Decides which actions of a statement SQLite permits. SQLite asks when it prepares the statement. SQLite resolves the
/// expressions of a table (its constraints, generated columns and indexes) without calling the authorizer. They cannot call a
/// function that this class denies either (`Connection.removeUnknownFunctions`).
package final class Authorizer {
    private struct Action {
        let code: Int32
        let arguments: (UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?)

        var first: String? { arguments.0.map { String(cString: $0) } }
        var second: String? { arguments.1.map { String(cString: $0) } }
        var schema: String? { arguments.2.map { String(cString: $0) } }
        var subject: String { first ?? "" }
    }

    /// True while moult's own code attaches or detaches a database; no other statement may do that.
    var isAttaching = false
    /// The forbidden action of the statement being prepared. SQLite's own error does not always name the action: a denied
    /// function is reported as unknown, and a failed schema change as a changed schema.
    package internal(set) var denied: String?
    private let rule: String
    private let denial: (Action, Authorizer) -> String?

    private init(_ rule: String = "", _ denial: @escaping (Action, Authorizer) -> String?) {
        (self.rule, self.denial) = (rule, denial)
    }

    func reason(_ denied: String) -> String { "\(rule), and this statement needs \(denied)" }

    /// Installs this authorizer. The connection must keep it alive.
    func install(on database: OpaquePointer) -> Int32 {
        sqlite3_set_authorizer(
            database,
            { context, code, first, second, schema, _ in
                guard let context else { return SQLITE_DENY }
                let authorizer = Unmanaged<Authorizer>.fromOpaque(context).takeUnretainedValue()
                let action = Action(code: code, arguments: (first, second, schema))
                guard let denied = authorizer.denial(action, authorizer) else { return SQLITE_OK }
                // Later denials are consequences of the first.
                if authorizer.denied == nil { authorizer.denied = denied }
                return SQLITE_DENY
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    // MARK: guards

    /// For inspecting a database that may be hostile, with these functions.
    static func reading(functions: Set<String>) -> Authorizer {
        Authorizer("only reading is allowed") { action, authorizer in
            let isPermitted =
                action.code == SQLITE_FUNCTION
                ? functions.contains((action.second ?? "").lowercased()) : authorizer.permitsReading(action)
            return isPermitted ? nil : name(action)
        }
    }

    /// For changing one database and nothing else: no other file, and not the transaction that the caller started.
    static func changing() -> Authorizer {
        Authorizer("a script may change only this database") { $1.permitsChanging($0) ? nil : name($0) }
    }

    private func permitsChanging(_ action: Action) -> Bool {
        switch action.code {
        case SQLITE_TRANSACTION, SQLITE_ATTACH, SQLITE_DETACH: false
        // SQLite's own implementation of ALTER TABLE uses internal functions, so the forbidden functions are listed instead of
        // the permitted ones.
        case SQLITE_FUNCTION: !Self.externalFunctions.contains((action.second ?? "").lowercased())
        case SQLITE_PRAGMA: Self.scriptPragmas.contains(action.subject.lowercased()) || permitsReading(action)
        default: true
        }
    }

    private func permitsReading(_ action: Action) -> Bool {
        switch action.code {
        case SQLITE_SELECT, SQLITE_READ, SQLITE_RECURSIVE, SQLITE_TRANSACTION: true
        case SQLITE_PRAGMA:
            Self.pragmas.contains(action.subject.lowercased())
                || action.second == nil && Self.readablePragmas.contains(action.subject.lowercased())
        case SQLITE_ATTACH, SQLITE_DETACH: isAttaching
        // SQLite prepares these statements to connect a module, and never runs them: an update of the schema for every virtual
        // table, and the writers of an R-tree. `query_only` stops any attempt to run them.
        case SQLITE_UPDATE where action.subject == "sqlite_master": true
        case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE:
            ["_node", "_rowid", "_parent"].contains { action.subject.hasByteSuffix($0) }
        default: false
        }
    }

    private static func name(_ action: Action) -> String {
        let (first, second) = (action.subject, action.second)
        return switch action.code {
        case SQLITE_FUNCTION: "the function \(second ?? "")"
        case SQLITE_PRAGMA: "PRAGMA \(first)" + (second.map { " = \($0)" } ?? "")
        case SQLITE_TRANSACTION: first
        case SQLITE_ATTACH: "ATTACH"
        case SQLITE_DETACH: "DETACH"
        case SQLITE_INSERT: "INSERT into \(first)"
        case SQLITE_UPDATE: "UPDATE of \(first)"
        case SQLITE_DELETE: "DELETE from \(first)"
        default: "action \(action.code) on \(first)"
        }
    }

    /// Pragmas that check the database or describe the schema: their argument only selects what is read.
    private static let pragmas: Set<String> = [
        "quick_check", "integrity_check", "foreign_key_check", "foreign_key_list", "table_list", "table_info",
        "table_xinfo", "index_list", "index_info", "index_xinfo", "ignore_check_constraints",
    ]

    private static let readablePragmas: Set<String> = [
        "application_id", "auto_vacuum", "collation_list", "compile_options", "data_version", "database_list",
        "encoding", "foreign_keys", "freelist_count", "journal_mode", "page_count", "page_size", "schema_version",
        "user_version",
    ]

    /// The settings that a script may change: the IDs of the database, and how the script's own statements are interpreted.
    /// Foreign keys are already off, but scripts may turn them off, as SQLite's procedure for changing a table requires.
    private static let scriptPragmas: Set<String> = [
        "application_id", "user_version", "foreign_keys", "defer_foreign_keys", "legacy_alter_table",
    ]

    /// Functions that load code or reach other files, in the versions of SQLite and shells that have them.
    private static let externalFunctions: Set<String> = [
        "load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "sqlite_dbpage",
    ]

    // MARK: conditions

    /// Allows a condition to read tables of its own database and to call deterministic functions, but nothing else.
    package static func selecting(from tables: Set<SQLName>) -> Authorizer {
        Authorizer { action, _ in
            let (first, second) = (action.subject, action.second ?? "")
            switch action.code {
            case SQLITE_SELECT, SQLITE_RECURSIVE: return nil
            // To prepare a table-valued function, SQLite declares a table, which requests both actions and changes nothing.
            case SQLITE_UPDATE where first == "sqlite_master": return nil
            case SQLITE_READ where first == "sqlite_master" && second == "ROWID": return nil
            case SQLITE_FUNCTION:
                let name = second.lowercased()
                if functions.contains(name) || TimeFunctions.names.contains(name) { return nil }
                return "the function \(second), which may return a different result each time"
            case SQLITE_READ:
                let name = SQLName(first)
                if name == "json_each" || name == "json_tree" { return nil }
                // If a statement reads no column of a table, SQLite names neither a column nor the schema.
                let isMain = action.schema == "main" || (action.schema ?? "").isEmpty && second.isEmpty
                if isMain, tables.contains(name), !name.isInternal { return nil }
                return "the table \(first), which the database does not have"
            default: return "something other than columns, functions and subqueries"
            }
        }
    }

    /// Installs this authorizer for statements prepared by the body, then restores the connection's own authorizer.
    package func guarding<R>(_ connection: Connection, _ body: () throws -> R) throws -> R {
        let (handle, doing) = (try connection.handle, "check a condition on \(connection.path)")
        try connection.check(install(on: handle), doing: doing)
        let result = Result { try body() }
        let own = connection.authorizer ?? connection.useWatch
        try connection.check(own?.install(on: handle) ?? sqlite3_set_authorizer(handle, nil, nil), doing: doing)
        return try withExtendedLifetime(self) { try result.get() }
    }

    /// Functions whose result depends only on their arguments.
    private static let functions: Set<String> = [
        "->", "->>", "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "avg", "ceil", "ceiling",
        "char", "coalesce", "concat", "concat_ws", "cos", "cosh", "count", "cume_dist", "degrees", "dense_rank", "exp",
        "first_value", "floor", "format", "glob", "group_concat", "hex", "if", "ifnull", "iif", "instr", "json",
        "json_array", "json_array_length", "json_extract", "json_group_array", "json_group_object", "json_insert",
        "json_object", "json_patch", "json_quote", "json_remove", "json_replace", "json_set", "json_type", "json_valid",
        "lag", "last_value", "lead", "length", "like", "likelihood", "likely", "ln", "log", "log10", "log2", "lower",
        "ltrim", "max", "min", "mod", "nth_value", "ntile", "nullif", "octet_length", "percent_rank", "pi", "pow",
        "power", "printf", "quote", "radians", "rank", "replace", "round", "row_number", "rtrim", "sign", "sin", "sinh",
        "soundex", "sqrt", "string_agg", "substr", "substring", "sum", "tan", "tanh", "total", "trim", "trunc",
        "typeof", "unhex", "unicode", "unlikely", "upper", "zeroblob",
    ]

    // MARK: watches

    static func watching(function: @escaping (String) -> Void, overwriting: @escaping () -> Void) -> Authorizer {
        Authorizer { action, _ in
            switch action.code {
            case SQLITE_FUNCTION: if let name = action.second { function(name) }
            // When a statement creates something, SQLite itself updates the schema.
            case SQLITE_UPDATE: if action.subject != "sqlite_master" { overwriting() }
            case SQLITE_DELETE, SQLITE_ALTER_TABLE: overwriting()
            // A parameter of a URI can select a VFS outside the connection's sandbox, and its name can be percent-encoded, so
            // no URI is permitted. If the file name is an expression, its value is not known here.
            case SQLITE_ATTACH: if action.first?.hasBytePrefix("file:") != false { return name(action) }
            // These settings are those of the whole process, and name a directory outside the sandbox.
            case SQLITE_PRAGMA:
                let settings = ["temp_store_directory", "data_store_directory"]
                if settings.contains(action.subject.lowercased()) { return name(action) }
            default: break
            }
            return nil
        }
    }
}

extension Connection {
    /// Reports, when a statement is prepared, the functions that it, or its triggers, defaults and views, call, and whether it changes
    /// or removes rows or a part of the schema. `REPLACE` is not detected.
    package func watchUses(function: @escaping (String) -> Void, overwriting: @escaping () -> Void) throws {
        let watch = Authorizer.watching(function: function, overwriting: overwriting)
        try check(watch.install(on: handle), doing: "watch the statements on \(path)")
        useWatch = watch
    }
}

/// SQLite's date and time functions, which read the clock or the time zone for some arguments.
package enum TimeFunctions {
    package static let names: Set<String> = [
        "date", "time", "datetime", "julianday", "strftime", "unixepoch", "timediff",
    ]
    private static let moving: Set<String> = ["now", "localtime", "utc"]

    /// Returns why the condition depends on when or where it is evaluated; nil if it does not.
    package static func fault(in condition: String) -> String? {
        let tokens = sqlTokens(condition)[...]
        for index in tokens.indices.dropLast() {
            let token = tokens[index]
            // A quoted name may be a function too.
            let name = asciiLowercased(token.text)
            guard token.kind == .word || token.kind == .quoted, names.contains(name),
                tokens[index + 1].isSymbol("(")
            else { continue }
            let arguments = tokens[(index + 2)..<tokens.closingParenthesis(of: index + 1)]
            let count = arguments.isEmpty ? 0 : arguments.splitAtCommas().count
            if count < (name == "strftime" ? 2 : 1) {
                return "calls \(name) without a time, which means the current time"
            }
            for argument in arguments where argument.kind == .string {
                let text = asciiLowercased(String(argument.text.dropFirst().dropLast())).trimmingSpaces
                if moving.contains(text) {
                    return "calls \(name) with '\(text)', which depends on when or where it is evaluated"
                }
            }
        }
        return nil
    }
}

extension String {
    fileprivate var trimmingSpaces: String {
        let start = drop { $0 == " " }
        return String(start.reversed().drop { $0 == " " }.reversed())
    }
}
