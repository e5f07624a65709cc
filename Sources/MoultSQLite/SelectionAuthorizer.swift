import CSQLite
package import MoultBasics

/// Allows a condition to read tables of its own database and to call deterministic functions, but nothing else.
package final class SelectionAuthorizer {
    private let tables: Set<SQLName>
    /// The first access that was denied.
    package private(set) var denied: String?

    package init(tables: Set<SQLName>) { self.tables = tables }

    /// Installs this authorizer for statements prepared by the body, then restores the connection's own authorizer.
    package func guarding<R>(_ connection: Connection, _ body: () throws -> R) throws -> R {
        let handle = try connection.handle
        let code = sqlite3_set_authorizer(
            handle,
            { context, action, first, second, schema, _ in
                guard let context else { return SQLITE_DENY }
                let authorizer = Unmanaged<SelectionAuthorizer>.fromOpaque(context).takeUnretainedValue()
                return authorizer.permits(action, text(first), text(second), text(schema))
                    ? SQLITE_OK : SQLITE_DENY
            }, Unmanaged.passUnretained(self).toOpaque())
        try connection.check(code, doing: "check a condition on \(connection.path)")
        let result = Result { try body() }
        let restored =
            connection.authorizer.map { $0.install(on: handle) } ?? connection.useWatch.map { $0.install(on: handle) }
            ?? sqlite3_set_authorizer(handle, nil, nil)
        try connection.check(restored, doing: "check a condition on \(connection.path)")
        return try withExtendedLifetime(self) { try result.get() }
    }

    private func permits(_ action: Int32, _ first: String, _ second: String, _ schema: String) -> Bool {
        switch action {
        case SQLITE_SELECT, SQLITE_RECURSIVE: return true
        // To prepare a table-valued function, SQLite declares a table, which requests both actions and changes nothing.
        case SQLITE_UPDATE where first == "sqlite_master": return true
        case SQLITE_READ where first == "sqlite_master" && second == "ROWID": return true
        case SQLITE_FUNCTION:
            let name = second.lowercased()
            if Self.functions.contains(name) || TimeFunctions.names.contains(name) { return true }
            return deny("the function \(second), which may return a different result each time")
        case SQLITE_READ:
            let name = SQLName(first)
            if name == "json_each" || name == "json_tree" { return true }
            // If a statement reads no column of a table, SQLite names neither a column nor the schema.
            let isMain = schema == "main" || schema.isEmpty && second.isEmpty
            if isMain, tables.contains(name), !name.isInternal { return true }
            return deny("the table \(first), which the database does not have")
        default: return deny("something other than columns, functions and subqueries")
        }
    }

    private func deny(_ what: String) -> Bool {
        if denied == nil { denied = what }
        return false
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
}

private func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }

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
