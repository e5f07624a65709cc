internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Plans the change of a user database: it is created from the release's template if it is missing, and otherwise kept or
/// migrated. A rollback to adopted files restores them unchanged.
enum Template {
    /// A user database does not fit the release, or a writable database cannot be used at its path.
    static let code = MoultError.Code.userDatabase

    static func change(for database: Database, _ context: PlanContext) throws -> Change {
        switch try context.occupant(of: database) {
        case .nothing, .generationLink, .cache: return .create(path: database.path, size: database.size)
        case .missing(let before): throw context.missing(before, at: database.path)
        case .obstacle: throw try context.obstacle(at: database.path, database)
        case .own, .foreign, .claimed, .link:
            try TrustedLink.require(database, context)
            if context.bringsBackAdopted { return try restoreAdopted(database, context) }
            return try UserSchema(database: database, context: context).change()
        }
    }

    private static func restoreAdopted(_ database: Database, _ context: PlanContext) throws -> Change {
        let place = context.store.path(database.path)
        let adopted = context.store.path(ofMember: database.member, in: context.generation)
        // SQLite treats an empty file as an empty database.
        if try Files.facts(adopted)?.size != 0, case .unfit(let why) = try Fitness.of(adopted, judge: { _ in nil }) {
            throw MoultError(
                code, .refused, what: "\(place) cannot be replaced by the adopted file",
                why: "\(adopted) is not a valid database: \(why)",
                now: "Nothing was changed. To copy that file next to the database: "
                    + shellLine(["cp", adopted, try Files.firstFree("\(place).adopted")]))
        }
        let forecast = RowForecast(database: database, context: context, isOwn: true, digest: nil)
        let rows: [RowFate]
        do { rows = try NonInvasiveReader.into(place) { try forecast.rowsLeft($0, place) } } catch let error
            as MoultError
        {
            if error.isAboutAccess { throw error }
            throw MoultError(
                code, .refused, what: "the database \(place) cannot be read",
                why: "\(error.what): \(error.why ?? "no reason was given")",
                now: "Nothing was changed. "
                    + (error.now
                        ?? "Before you repeat the command, set the database aside and start with the shipped content: "
                        + "moult reset \(database.name) --set-user-data-aside"),
                cause: error)
        }
        return .replace(
            path: database.path, member: database.member, size: database.size, reason: .rolledBack, rows: rows)
    }
}
