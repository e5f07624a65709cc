import MoultBasics
package import MoultSQLite

/// Checks whether rows of a table can be carried over to another database with the same schema.
package enum CarryingCheck {
    /// Returns why the statements that carry rows over cannot be prepared; nil if they can, or if the table is missing.
    ///
    /// Extensions that only the app has, such as a collation, are not a reason, because they may be available during the
    /// update.
    package static func fault(
        of table: String, in connection: Connection, rejects: RejectTable = RejectTable(label: "")
    ) throws -> String? {
        guard let layout = try TableLayout.of(SQLName(table), in: connection) else { return nil }
        do {
            // Rows are carried over without firing triggers, which may need the app's extensions.
            try connection.with(.triggers, false) { try prepare(layout, connection, rejects) }
            return nil
        } catch let error as MoultError {
            if error.code == .selection { return error.why ?? error.what }
            guard let sqlite = error.sqlite, sqlite.resultCode.primary == .error else { throw error }
            if sqlite.missingExtension != nil { return nil }
            return "the table has \(layout.columns.count) columns, and SQLite says: \(sqlite.message)"
        }
    }

    private static func prepare(_ layout: TableLayout, _ connection: Connection, _ rejects: RejectTable) throws {
        let transfer = try TableTransfer(
            RowRule(table: layout.name), ColumnMap(layout, layout, renamed: [:]), from: layout, connection,
            into: layout,
            connection, RejectWriter(rejects, connection))
        _ = try connection.statement(transfer.selectSQL())
    }
}
