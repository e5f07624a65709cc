internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// Plans the change of a user database: it is created from the release's template if it is missing, and otherwise kept or
/// migrated to the release's schema.
struct UserSchema {
    let database: Database
    let context: PlanContext

    func change() throws -> Change {
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
            return try changeOfExisting()
        }
    }

    private func changeOfExisting() throws -> Change {
        let kept = "the existing file is kept"
        try requireUsable()
        // If a release does not specify versions, the app is responsible for the schema.
        guard let known = database.knownUserVersion, let version = try version() else {
            return .keep(why: try kept + requireKeptSchema())
        }
        guard version <= known else {
            throw MoultError(
                .userDatabase, .refused, what: "\(place) is newer than release \(context.release.version) supports",
                why: "the user_version of the database is \(version), and the release supports at most \(known)",
                now: "Apply a newer release. The database was not touched.")
        }
        let pending = database.migrations.filter { $0.number > version }
        guard let last = pending.last, context.purpose == .update else {
            return .keep(why: try "\(kept), user_version \(version)" + requireKeptSchema())
        }
        return .migrate(path: database.path, members: pending.map(\.member), from: version, to: last.number)
    }

    /// Throws if SQLite cannot open the existing database.
    private func requireUsable() throws {
        switch try Fitness.of(place, judge: { _ in nil }) {
        case .unfit(let why, _): throw try unusable(why, cause: nil)
        case .unknown(let error) where Files.isDenied(error): throw error
        case .fits, .missing, .unknown: return
        }
    }

    /// Throws if the kept database does not have the schema of the release. This needs a template in the store; if the store
    /// has none, `check(_:)` is called later with the template from the bundle, and the result says so.
    private func requireKeptSchema() throws -> String {
        guard context.purpose == .update else { return "" }
        let template = context.store.path(ofMember: database.member, in: context.generation)
        guard try Files.facts(template)?.kind == .file else {
            return try hasReleasedSchema() ? "" : "; whether it has the tables of the release is known at apply"
        }
        // If the template is damaged, this update recreates it, and compares the database with the new one.
        do { try check(template) } catch let error as MoultError where error.code == .databaseCorrupt { return "" }
        return ""
    }

    /// Returns whether the schema is exactly that of the release; true if the manifest does not name it, or if an app has the database
    /// locked, which can evidently use its schema.
    private func hasReleasedSchema() throws -> Bool {
        guard database.schemaOwner == .release, let wanted = database.identity.schema else { return true }
        do {
            let text = try NonInvasiveReader.into(place) { try SchemaShape.ofContent($0).canonicalText }
            return wanted == "sha256:\(try SHA256.digest(of: Array(text.utf8)).hex)"
        } catch let error as MoultError where error.outcome == .busy { return true }
    }

    /// Throws if a database lacks parts of the schema that the app of this release needs.
    func check(_ template: String) throws {
        guard database.schemaOwner == .release, context.purpose == .update else { return }
        let expected = try SchemaShape.ofContent(Connection(path: template, access: .immutable))
        do {
            guard
                let lack = try NonInvasiveReader.into(place, { try SchemaShape.ofContent($0) }).lacks(of: expected)
                    .first
            else { return }
            throw context.schemaMisfit(lack, at: place)
        } catch let error as MoultError where error.outcome == .busy {
            // A process that has the database locked can evidently use it.
        }
    }

    private var place: String { context.store.path(database.path) }

    /// Returns the database's `user_version`; nil if it cannot be read and the release does not need it.
    private func version() throws -> Int? {
        do { return Int(try NonInvasiveReader.into(place) { try $0.int("PRAGMA user_version") }) } catch let error
            as MoultError
        {
            // A sidecar that SQLite must not use says nothing about the content.
            if error.isAboutAccess || error.code == .databaseRequest { throw error }
            if database.migrations.isEmpty || context.purpose != .update { return nil }
            throw try unusable("\(error.what): \(error.why ?? "no reason was given")", cause: error)
        }
    }

    private func unusable(_ why: String, cause: (any Error)?) throws -> MoultError {
        // Only a database of the installed release can be reset.
        let isInstalled =
            context.installed?.database(database.name).map { !$0.kind.isSealed && $0.path == database.path } ?? false
        return MoultError(
            .userDatabase, .refused, what: "the user database \(place) cannot be used", why: why,
            now: "Nothing was changed. "
                + (isInstalled
                    ? "To set it aside and start with an empty one: \(moult: "reset", database.name, "--set-user-data-aside")"
                    : "Before you apply again, move it away: \(Files.commandToMoveAway(place))"),
            cause: cause)
    }
}
