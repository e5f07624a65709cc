import MoultBasics
import MoultSQLite

/// The indexes of tables into which rows were carried over.
///
/// SQLite itself can leave a row out of an index: with the encoding UTF-16, an index on an expression such as `lower(x)` and a blob.
enum CarriedIndexes {
    /// Checks the indexes of a table, and rebuilds them if a row is missing in one. Throws if that does not help.
    static func require(_ table: String, in connection: Connection) throws {
        do {
            guard try fault(table, connection) != nil else { return }
            try connection.run("REINDEX main.\(quoteIdentifier(table))")
            guard let fault = try fault(table, connection) else { return }
            throw MoultError(
                .shippedViolation, .refused, what: "table \(table) is damaged after rows were carried over", why: fault,
                now: "Nothing was changed. Publish the database without the index that SQLite names.")
        } catch  where Connection.needsApp(error) {
            // Only the app has a collation or function of an index.
        }
    }

    private static func fault(_ table: String, _ connection: Connection) throws -> String? {
        let found = try connection.scalar("PRAGMA main.integrity_check(\(quoteIdentifier(table)))")
        return found == .text("ok") ? nil : found?.textOrEmpty ?? "the check has no result"
    }
}
