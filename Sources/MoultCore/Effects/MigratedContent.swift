internal import MoultSQLite
internal import StepKit

/// What migrations do to the values that were in a database before.
enum MigratedContent {
    static func fates(from before: Connection, to after: Connection) throws -> [RowFate] { [] }
}
