internal import MoultSQLite
internal import StepKit

/// What migrations do to the values that were in a database before: the rows of which something is only in the copy.
enum MigratedContent {
    static func fates(from before: Connection, to after: Connection) throws -> [RowFate] {
        try MigrationLoss(from: before, to: after).tables.map {
            RowFate(table: $0.name, kept: $0.rows)
        }
    }
}
