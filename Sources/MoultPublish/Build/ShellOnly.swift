internal import MoultBasics

/// The functions, tables and collations that the sqlite3 shell (3.40) adds to SQLite; a script that uses them works only there.
enum ShellOnly {
    static let functions: Set<String> = [
        "decimal", "decimal_add", "decimal_cmp", "decimal_mul", "decimal_sub", "decimal_sum", "edit", "ieee754",
        "ieee754_exponent", "ieee754_from_blob", "ieee754_mantissa", "ieee754_to_blob", "lsmode", "readfile", "regexp",
        "regexpi", "sha3", "sha3_query", "shell_add_schema", "shell_escape_crnl", "shell_idquote", "shell_int32",
        "shell_module_schema", "shell_putsnl", "sqlar_compress", "sqlar_uncompress", "usleep", "writefile", "zipfile",
        "zipfile_cds",
    ]
    static let tables: Set<String> = [
        "completion", "fsdir", "generate_series", "pragma_function_list", "sqlite_dbdata", "sqlite_dbptr", "zipfile",
    ]
    static let collations: Set<String> = ["decimal", "uint"]

    /// Returns the advice if SQLite reports that one of these is missing; otherwise nil.
    static func advice(for message: String) -> Advice? {
        func named(_ prefix: String, _ names: Set<String>) -> String? {
            guard message.hasPrefix(prefix) else { return nil }
            let name = message.dropFirst(prefix.count).lowercased()
            return names.contains(name) ? name : nil
        }
        if let name = named("no such function: ", functions) {
            let what = name == "regexp" ? "REGEXP" : "\(name)()"
            return "\(what) is a function of the sqlite3 shell, not of SQLite. \(instead(name))"
        }
        if let name = named("no such table: ", tables) ?? named("no such module: ", tables) {
            return "\(name) is a table of the sqlite3 shell, not of SQLite. \(instead(name))"
        }
        if let name = named("no such collation sequence: ", collations) {
            return
                "\(name) is a collation of the sqlite3 shell, not of SQLite: every app would have to define the collation."
        }
        return nil
    }

    private static func instead(_ name: String) -> String {
        switch name {
        case "readfile": "Write the bytes as a literal, x'…', or import them."
        case "generate_series": "Use WITH RECURSIVE."
        case "regexp", "regexpi": "Use LIKE or GLOB."
        default: "Leave it out, or compute the values before the build."
        }
    }
}
