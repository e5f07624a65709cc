import MoultBasics
import SQLite3
import StepKit

/// Masks a column of a staged database, so the original values never reach the installed database.
///
///     { "step": "example.mask", "after": "copy", "with": { "database": "people", "table": "person", "column": "email" } }
struct MaskColumn: CustomStep {
    let name = "example.mask"
    let summary = "masks a column of a staged database"

    func plan(_ context: PlanContext) throws -> [Effect] {
        let column = try Column(context.release)
        // A database from a kept generation has been masked already.
        if case .directory = try context.store.look(".moult/generations/\(context.generation)") { return [] }
        let text = "\(column.table).\(column.column) is masked"
        return [effect(.copy, column.database.name, .custom(name: "mask", text: text, with: .object([])))]
    }

    func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        guard !effects.isEmpty else { return }
        let column = try Column(context.plan.release)
        try column.mask(in: "\(context.stagedGeneration)/\(column.database.member)")
    }

    // `prepare` has done all the work in staging, which apps do not see.
    func apply(_ effect: Effect, _ context: ApplyContext) {}
    func undo(_ effect: Effect, _ context: ApplyContext) {}
}

/// The column to mask, as named in the manifest.
struct Column {
    let database: Database
    let table: String
    let column: String

    init(_ release: Manifest) throws {
        let with = release.steps.first { $0.step == "example.mask" }?.with
        guard let name = with?["database"]?.string, let table = with?["table"]?.string,
            let column = with?["column"]?.string, let database = release.database(name), database.kind == .reference
        else {
            throw Self.failed(
                "the step example.mask has no column to mask",
                "its parameters must be a reference database, a table and a column")
        }
        (self.database, self.table, self.column) = (database, table, column)
    }

    /// Keeps only the first letter of each value. Masking twice gives the same result as masking once.
    func mask(in path: String) throws {
        var connection: OpaquePointer?
        defer { sqlite3_close(connection) }
        let (table, column) = (Self.quoted(table), Self.quoted(column))
        // Without secure_delete, the old values could still be read from the file.
        let sql = "PRAGMA secure_delete = ON; UPDATE \(table) SET \(column) = substr(\(column), 1, 1) || '***'; VACUUM"
        guard sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK,
            sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK
        else { throw Self.failed("cannot mask \(column) in \(path)", String(cString: sqlite3_errmsg(connection))) }
    }

    private static func quoted(_ name: String) -> String {
        "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }

    private static func failed(_ what: String, _ why: String) -> MoultError {
        MoultError(MoultError.Code(9000), .refused, what: what, why: why)
    }
}
