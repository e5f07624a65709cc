internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
public import StepKit

/// Delete: takes out of service the files that the release replaces or that cannot be used. It destroys nothing.
public struct DeleteStep: Step {
    public let name = "delete"
    public let summary = "takes the old databases out of service; their files are kept"

    public init() {}

    public func plan(_ context: PlanContext) throws -> [Effect] {
        if context.purpose == .reset { return try reset(context) }
        var effects: [Effect] = []
        if let installed = context.installed, let generation = context.installedGeneration,
            generation != context.generation
        {
            effects += try retire(installed, generation, context)
        }
        try requirePaths(context)
        try refuseObstacles(context)
        return try effects + oldContent(context)
    }

    private func oldContent(_ context: PlanContext) throws -> [Effect] {
        try context.release.databases.compactMap { database in
            try OldContent(database: database, context: context).change().map { effect(.delete, database.name, $0) }
        }
    }

    /// Plans to set aside a database that SQLite cannot open; in any other, the content is replaced in place.
    private func reset(_ context: PlanContext) throws -> [Effect] {
        guard context.restoringTable == nil, let database = context.only.flatMap(context.release.database) else {
            return []
        }
        let path = context.path(of: database)
        let place = context.store.path(path)
        let reason: KeptReason = context.restoring == nil ? .reset : .restored
        let inPlace = Change.displace(path: path, why: context.reason, reason: reason)
        if case .link(let target) = try context.occupant(of: database), try context.store.leads(path) {
            if try Fitness.canBeRewritten(place) { return [effect(.delete, database.name, inPlace)] }
            throw MoultError(
                .occupied, .refused, what: "\(place) is a symbolic link to \(target)",
                why: "SQLite cannot open the target, and moult does not move a file outside the store",
                now: "Nothing was changed. Move the target away and remove the link, then "
                    + (context.restoring == nil
                        ? "run: \(moult: "reset", database.name)"
                            + (database.kind.isDisposable ? "" : " --set-user-data-aside")
                        : "repeat the command. Or restore only the rows of a table: --table TABLE"))
        }
        // An empty file may be the rest of a lost database, so it is kept as it is.
        let facts = try Files.facts(place)
        let isSetAside = try facts?.kind != .file || facts?.size == 0 || !Fitness.canBeRewritten(place)
        return [
            effect(
                .delete, database.name,
                isSetAside ? .quarantine(path: path, why: context.reason, reason: reason) : inPlace)
        ]
    }

    private func retire(_ installed: Manifest, _ generation: String, _ context: PlanContext) throws -> [Effect] {
        let kept = Set(context.release.databases.filter(\.kind.isSealed).map(\.path))
        var effects: [Effect] = []
        for database in installed.databases where database.kind.isSealed {
            effects.append(effect(.delete, database.name, .retire(generation: generation)))
            if !kept.contains(database.path), case .sealedLink = try context.store.look(database.path) {
                effects.append(effect(.delete, database.name, .unlink(path: database.path)))
            }
        }
        return effects
    }

    /// Throws if the release replaces a database with app data by one of another kind at another path: the app would no longer use
    /// the data, and nothing would tell the user.
    private func requireUse(of database: Database, _ context: PlanContext) throws {
        guard context.purpose != .rollback, !database.holdsAppData,
            let before = context.installed?.database(database.name), before.holdsAppData,
            before.path != context.path(of: database), case .file = try context.store.look(before.path)
        else { return }
        throw MoultError(
            .occupied, .refused,
            what:
                "\(context.store.path(before.path)) belongs to the \(before.kind.rawValue) database \"\(before.name)\"",
            why:
                "release \(context.release.version) has a \(database.kind.rawValue) database of that name at \(context.path(of: database)), "
                + "and the app would no longer use the data",
            now: "Nothing was changed. Ask the publisher for a release that gives the new database another name.")
    }

    /// Throws if the release has a database with app data at another path: apps may have the file open, and no rename is safe then.
    private func requirePaths(_ context: PlanContext) throws {
        for database in context.release.databases {
            try requireUse(of: database, context)
            guard let before = try context.moved(database) else { continue }
            throw MoultError(
                .occupied, .refused,
                what:
                    "release \(context.release.version) has \(database.name) at \(database.path), and the file is at \(before.path)",
                why: "the path of a database with app data cannot change, because apps may have the file open",
                now:
                    "Nothing was changed. Ask the publisher for a release that keeps the path \(before.path), or that gives the "
                    + "database at \(database.path) another name.")
        }
    }

    /// Throws if the path of a read-only database has something that a link must not replace.
    private func refuseObstacles(_ context: PlanContext) throws {
        for database in context.release.databases where database.kind.isSealed {
            let path = context.path(of: database)
            switch try context.occupant(of: database) {
            case .obstacle: throw try context.obstacle(at: path, database)
            case .link(let target):
                // If a link created by moult was changed, it is recreated.
                let isChangedLink =
                    context.installed?.databases.contains { $0.path == path && $0.kind.isSealed } == true
                if !isChangedLink { throw context.foreignLink(target, at: path, database) }
            case .nothing, .generationLink: try refuseSidecars(path, database, context)
            case .missing(let before): throw context.missing(before, at: path)
            case .foreign, .own, .cache, .claimed: break
            }
        }
    }

    /// Throws if a sidecar is next to the link to a database, or next to the file that it will lead to: SQLite looks next to the
    /// file, and older versions next to the link.
    private func refuseSidecars(_ path: String, _ database: Database, _ context: PlanContext) throws {
        let why =
            "the sidecar belongs to another file, and some versions of SQLite would read it as part of the database"
        let member = context.store.path(ofMember: database.member, in: context.generation)
        let next = "the read-only database \(path)"
        let file =
            database.place == .inPlace && context.purpose == .update
            ? "\(context.resources)/\(database.member)" : try Files.target(ofLink: member) ?? member
        for suffix in SidecarSuffixes.all {
            if try context.store.look(path + suffix) != .nothing {
                throw stray(context.store.path(path + suffix), next: next, why)
            }
            if try Files.facts(file + suffix) != nil { throw stray(file + suffix, next: next, why) }
        }
    }

    private func stray(_ sidecar: String, next: String, _ why: String) -> MoultError {
        MoultError(
            .straySidecar, .refused, what: "\(sidecar) is next to \(next)", why: why,
            now: "Nothing was changed. \(Files.moveAway(sidecar))")
    }

    public func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        guard context.plan.purpose == .reset, context.plan.restoring == nil else { return }
        for effect in effects { try RowSalvage(context: context).prepare(effect) }
    }
}
