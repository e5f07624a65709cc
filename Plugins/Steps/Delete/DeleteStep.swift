internal import MoultBasics
internal import MoultFiles
public import StepKit

/// Delete: takes out of service the files that the release replaces or that cannot be used. It destroys nothing.
public struct DeleteStep: Step {
    public let name = "delete"
    public let summary = "takes the old databases out of service; their files are kept"

    public init() {}

    public func plan(_ context: PlanContext) throws -> [Effect] {
        if context.purpose == .reset { return try reset(context) }
        var context = context
        var effects = try postpone(context)
        context.planned += effects
        if let installed = context.installed, let generation = context.installedGeneration,
            generation != context.generation
        {
            effects += try retire(installed, generation, context)
        }
        try requirePaths(context)
        return try effects + adopt(context) + quarantine(context)
    }

    /// Plans to postpone the replacement of caches that a process has open. A cache can be recreated at any time, so such a
    /// process does not block a release. If a consumer will be asked to release the cache, the replacement is not postponed.
    private func postpone(_ context: PlanContext) throws -> [Effect] {
        try context.release.databases.compactMap { database -> Effect? in
            guard database.kind.isDisposable, !context.isReleased(database.name) else { return nil }
            let path = context.path(of: database)
            switch try context.occupant(of: database) {
            case .own, .cache: break
            // A file that moult did not create may contain user data, and would count as a cache after this release.
            case .nothing, .missing, .generationLink, .claimed, .foreign, .link, .obstacle: return nil
            }
            guard let fault = try CacheFitness(database: database, context: context).fault(),
                let user = try Self.user(of: context.store.path(path))
            else { return nil }
            return effect(.delete, database.name, .postpone(path: path, why: "\(fault), and \(user) has it open"))
        }
    }

    /// Returns a process that has a file open; nil if none has. Only the kernel knows: a lease is granted only then, also if the
    /// process belongs to another user or runs in a container.
    private static func user(of path: String) throws -> String? {
        guard try Files.facts(path)?.kind == .file, SystemFeatures.hasFileLeases else {
            return try OpenFiles.holder(of: path)
        }
        do { if try WriteLease.take(path) != nil { return nil } } catch let error as MoultError
            where Files.isDenied(error)
        {
            // The file belongs to another user.
        }
        return try OpenFiles.holder(of: path) ?? "another process"
    }

    private func quarantine(_ context: PlanContext) throws -> [Effect] {
        try context.release.databases.compactMap { database in
            guard let (why, reason) = try outOfUse(database, context) else { return nil }
            return effect(
                .delete, database.name, .quarantine(path: context.path(of: database), why: why, reason: reason))
        }
    }

    /// Returns why a file must be set aside as a whole; nil if it stays or is replaced in a different way.
    private func outOfUse(_ database: Database, _ context: PlanContext) throws -> (String, KeptReason)? {
        let occupant = try context.occupant(of: database)
        if case .claimed(let before) = occupant {
            try context.proveTakeOver(of: database, from: before)
            let why = "taken over from the \(before.kind.rawValue) database \"\(before.name)\""
            return database.kind.isReplaced ? nil : (why, .takenOver)
        }
        if occupant == .cache {
            return ("the release has a \(database.kind.rawValue) database at this path", .unfitCache)
        }
        switch database.kind {
        case .cache:
            // A file that moult did not create becomes a generation instead.
            if occupant == .foreign || context.isPostponed(context.path(of: database)) { return nil }
            guard let fault = try CacheFitness(database: database, context: context).fault() else { return nil }
            try refuseForeignCache(database, occupant, context)
            return (fault, .unfitCache)
        case .user, .shared: return try strays(beside: database, context).map { ($0, .replaced) }
        case .reference: return nil
        }
    }

    /// Throws if the path of a cache has a link or a directory, which may lead to app data, unless the installed release has
    /// its cache there.
    private func refuseForeignCache(_ database: Database, _ occupant: Occupant, _ context: PlanContext) throws {
        let path = context.path(of: database)
        if context.hasInstalledCache(at: path) { return }
        switch occupant {
        case .link(let target): throw context.foreignLink(target, at: path, database)
        case .obstacle: throw try context.obstacle(at: path, database)
        default: return
        }
    }

    /// Returns a fault if the database is missing but has sidecars, which SQLite would treat as those of the file to be
    /// created.
    private func strays(beside database: Database, _ context: PlanContext) throws -> String? {
        guard try context.store.look(database.path) == .nothing else { return nil }
        for suffix in SidecarSuffixes.withRows where try context.store.look(database.path + suffix) != .nothing {
            return "the file is missing, and only \(database.path)\(suffix) is left"
        }
        return nil
    }

    /// Plans to set aside the database, whether it can be opened or not.
    private func reset(_ context: PlanContext) throws -> [Effect] {
        guard context.restoringTable == nil, let database = context.only.flatMap(context.release.database) else {
            return []
        }
        if case .link(let target) = try context.occupant(of: database),
            try context.store.leads(context.path(of: database))
        {
            let path = context.store.path(context.path(of: database))
            throw MoultError(
                .occupied, .refused, what: "\(path) is a symbolic link to \(target)",
                why: "setting the database aside would move the target of the link, which may be outside the store",
                now: "Nothing was changed. Move the target away and remove the link, then "
                    + (context.restoring == nil
                        ? "run: moult reset \(database.name)"
                            + (database.kind.isDisposable ? "" : " --set-user-data-aside")
                        : "repeat the command. Or restore only the rows of a table: --table TABLE"))
        }
        return [
            effect(
                .delete, database.name,
                .quarantine(
                    path: context.path(of: database), why: context.reason,
                    reason: context.restoring == nil ? .reset : .restored))
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
        guard context.purpose != .rollback, !database.holdsAppData, !context.isAdopted(context.installedGeneration),
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

    /// Plans to keep files that moult did not create as a generation before they are replaced.
    private func adopt(_ context: PlanContext) throws -> [Effect] {
        let generation = try Self.adoptedGeneration(context)
        return try context.release.databases.compactMap { database in
            let path = context.path(of: database)
            switch try context.occupant(of: database) {
            case .foreign:
                guard try !staysInPlace(database, path, context) else { return nil }
                return effect(.delete, database.name, .adopt(path: path, generation: generation))
            case .obstacle:
                if database.kind.isSealed { throw try context.obstacle(at: path, database) }
            case .link(let target):
                // If a link created by moult was changed, it is recreated.
                let isChangedLink =
                    context.installed?.databases.contains { $0.path == path && $0.kind.isSealed } == true
                if database.kind.isSealed, !isChangedLink { throw context.foreignLink(target, at: path, database) }
            case .nothing, .generationLink:
                if database.kind.isSealed { try refuseSidecars(path, database, context) }
            case .missing, .own, .cache, .claimed: break
            }
            return nil
        }
    }

    /// Returns whether a file that moult did not create stays at its path, and the database uses it.
    private func staysInPlace(_ database: Database, _ path: String, _ context: PlanContext) throws -> Bool {
        switch database.kind {
        case .reference, .shared: false
        case .user: true
        // A matching file stays only if moult's own cache was there last. Any other file may contain user data, and a cache can
        // later be removed from quarantine.
        case .cache:
            try context.hadCache(at: path) && CacheFitness(database: database, context: context).fault() == nil
        }
    }

    /// Returns the first unused name among `0+adopted`, `0+adopted.2`, …
    private static func adoptedGeneration(_ context: PlanContext) throws -> String {
        var number = 1
        while true {
            let name = AdoptedGeneration.name(number)
            if try context.store.look(forGeneration: name) == .nothing { return name }
            number += 1
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
