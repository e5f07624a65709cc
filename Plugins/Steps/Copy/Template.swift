internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Plans the change of a user database: it is created from the release's template if it is missing, and otherwise kept or
/// migrated.
enum Template {
    /// A user database does not fit the release, or a writable database cannot be used at its path.
    static let code = MoultError.Code.userDatabase

    static func change(for database: Database, _ context: PlanContext) throws -> Change {
        if context.isSetAside(database.path) { return .create(path: database.path, size: database.size) }
        switch try context.occupant(of: database) {
        case .nothing, .generationLink: return .create(path: database.path, size: database.size)
        case .missing(let before): throw context.missing(before, at: database.path)
        case .obstacle: throw try context.obstacle(at: database.path, database)
        case .own, .foreign, .link, .cache, .claimed:
            if let reason = context.displacement(at: database.path) {
                return .replace(Replacement(database, at: database.path, reason))
            }
            try TrustedLink.require(database, context)
            return try UserSchema(database: database, context: context).change()
        }
    }
}
