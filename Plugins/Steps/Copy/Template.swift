internal import MoultBasics
internal import StepKit

/// A user's database: made from the release's template if there is none, else migrated, and never replaced.
enum Template {
    /// A living database cannot be made where it shall be.
    static let code = MoultError.Code(520)

    static func change(for database: Database, _ context: PlanContext) throws -> Change {
        switch try context.store.look(database.path) {
        case .nothing:
            return .create(path: database.path, size: database.size)
        case .file:
            return try UserSchema(database: database, context: context).change()
        case .link(let target):
            // The link of a sealed database that the release turns into a user's goes in the delete phase.
            if target.hasPrefix(".moult/") {
                return .create(path: database.path, size: database.size)
            }
            return try UserSchema(database: database, context: context).change()
        case .directory, .other:
            throw MoultError(
                code, .refused, what: "\(context.store.path(database.path)) is in the way",
                why: "it is no file, and the user's database \"\(database.name)\" belongs there",
                now: "Move it away, and apply again.")
        }
    }
}
