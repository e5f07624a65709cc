import CSQLite
import MoultBasics

/// Limits the actions of statements on a guarded connection. SQLite calls the authorizer when it prepares a statement.
///
/// SQLite resolves the expressions of a table (its constraints, generated columns and indexes) without calling the authorizer.
/// They cannot call a function that this class denies either (`Connection.removeUnknownFunctions`).
final class Authorizer {
    /// The purpose of the statements.
    enum Purpose {
        /// Inspecting a database that may be hostile, with these functions.
        case reading(functions: Set<String>)
        /// Changing one database and nothing else: no other file, and not the transaction that the caller started.
        case changing
    }

    let purpose: Purpose
    /// True while moult's own code attaches or detaches a database; no other statement may do that.
    var isAttaching = false
    /// The forbidden action of the statement being prepared. SQLite's own error does not always name the action: a denied
    /// function is reported as unknown, and a failed schema change as a changed schema.
    var denied: String?

    init(_ purpose: Purpose) { self.purpose = purpose }

    /// Returns the reason why an action was denied, as text for a message.
    func reason(_ denied: String) -> String {
        switch purpose {
        case .reading: "only reading is allowed, and this statement needs \(denied)"
        case .changing: "a script may change only this database, and this statement needs \(denied)"
        }
    }

    private func permits(_ action: Int32, _ first: String, _ second: String?) -> Bool {
        switch (purpose, action) {
        case (.reading(let functions), SQLITE_FUNCTION): functions.contains((second ?? "").lowercased())
        case (.reading, _): permitsReading(action, first, second)
        case (.changing, _): permitsChanging(action, first, second)
        }
    }

    private func permitsChanging(_ action: Int32, _ first: String, _ second: String?) -> Bool {
        switch action {
        case SQLITE_TRANSACTION, SQLITE_ATTACH, SQLITE_DETACH: false
        // SQLite's own implementation of ALTER TABLE uses internal functions, so the forbidden functions are listed instead of
        // the permitted ones.
        case SQLITE_FUNCTION: !Self.externalFunctions.contains((second ?? "").lowercased())
        case SQLITE_PRAGMA:
            Self.scriptPragmas.contains(first.lowercased()) || permitsReading(action, first, second)
        default: true
        }
    }

    private func permitsReading(_ action: Int32, _ first: String, _ second: String?) -> Bool {
        switch action {
        case SQLITE_SELECT, SQLITE_READ, SQLITE_RECURSIVE, SQLITE_TRANSACTION: true
        case SQLITE_PRAGMA:
            Self.pragmas.contains(first.lowercased())
                || second == nil && Self.readablePragmas.contains(first.lowercased())
        case SQLITE_ATTACH, SQLITE_DETACH: isAttaching
        // SQLite prepares these statements to connect a module, and never runs them: an update of the schema for every virtual
        // table, and the writers of an R-tree. `query_only` stops any attempt to run them.
        case SQLITE_UPDATE where first == "sqlite_master": true
        case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE: Self.treeTables.contains { first.hasByteSuffix($0) }
        default: false
        }
    }

    /// Installs this authorizer. The connection must keep it alive.
    func install(on database: OpaquePointer) -> Int32 {
        sqlite3_set_authorizer(
            database,
            { context, action, first, second, _, _ in
                guard let context else { return SQLITE_DENY }
                let authorizer = Unmanaged<Authorizer>.fromOpaque(context).takeUnretainedValue()
                let first = first.map { String(cString: $0) } ?? ""
                let second = second.map { String(cString: $0) }
                if authorizer.permits(action, first, second) { return SQLITE_OK }
                // Later denials are consequences of the first.
                if authorizer.denied == nil { authorizer.denied = Authorizer.name(action, first, second) }
                return SQLITE_DENY
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private static func name(_ action: Int32, _ first: String, _ second: String?) -> String {
        switch action {
        case SQLITE_FUNCTION: "the function \(second ?? "")"
        case SQLITE_PRAGMA: "PRAGMA \(first)" + (second.map { " = \($0)" } ?? "")
        case SQLITE_TRANSACTION: first
        case SQLITE_ATTACH: "ATTACH"
        case SQLITE_DETACH: "DETACH"
        case SQLITE_INSERT: "INSERT into \(first)"
        case SQLITE_UPDATE: "UPDATE of \(first)"
        case SQLITE_DELETE: "DELETE from \(first)"
        default: "action \(action) on \(first)"
        }
    }

    private static let treeTables = ["_node", "_rowid", "_parent"]

    /// Pragmas that check the database or describe the schema: their argument only selects what is read.
    private static let pragmas: Set<String> = [
        "quick_check", "integrity_check", "foreign_key_check", "foreign_key_list", "table_list", "table_info",
        "table_xinfo", "index_list", "index_info", "index_xinfo", "ignore_check_constraints",
    ]

    /// Pragmas that may be read, but not set.
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
}
