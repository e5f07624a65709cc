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
            try context.requireTrustedFile(database)
            return try UserSchema(database: database, context: context).change()
        }
    }
}

extension PlanContext {
    /// Throws if the path of a writable database is a dangling link, or a link that another user controls.
    func requireTrustedFile(_ database: Database) throws {
        let path = store.path(database.path)
        guard try Files.facts(path)?.kind == .link else { return }
        if try Files.factsThroughLinks(path)?.kind != .file { throw missing(database, at: database.path) }
        try WritableFile.requireTrustedLink(path)
    }
}
