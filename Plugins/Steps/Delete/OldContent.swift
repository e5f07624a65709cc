internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// The content at the path of a database that leaves as a whole: another database, another app or an unfit cache left it there.
struct OldContent {
    let database: Database
    let context: PlanContext

    /// Returns how the content leaves; nil if it stays, or if its rows decide what happens to it.
    func change() throws -> Change? {
        let occupant = try context.occupant(of: database)
        guard let (why, reason) = try cause(occupant) else { return nil }
        let path = context.path(of: database)
        return try isSetAside(occupant)
            ? .quarantine(path: path, why: why, reason: reason) : .displace(path: path, why: why, reason: reason)
    }

    private func cause(_ occupant: Occupant) throws -> (String, KeptReason)? {
        switch occupant {
        case .claimed(let before):
            try context.proveTakeOver(of: database, from: before)
            return ("taken over from the \(before.kind.rawValue) database \"\(before.name)\"", .takenOver)
        case .cache:
            return ("the release has a \(database.kind.rawValue) database at this path", .unfitCache)
        case .foreign where try !staysInPlace(): return ("it existed before the release", .foreign)
        case .nothing where database.holdsAppData: return try strays().map { ($0, .replaced) }
        case .own, .link, .obstacle, .missing, .nothing:
            guard database.kind.isDisposable else { return nil }
            guard let fault = try cacheFault() else { return nil }
            try refuseForeignCache(occupant)
            return (fault, .unfitCache)
        case .foreign, .generationLink: return nil
        }
    }

    private func isSetAside(_ occupant: Occupant) throws -> Bool {
        if database.kind.isSealed { return true }
        let place = context.store.path(context.path(of: database))
        switch occupant {
        case .claimed, .cache, .foreign, .own:
            return try !Fitness.canBeRewritten(place, checkingPages: !database.kind.isReplaced)
        case .nothing, .obstacle, .generationLink: return true
        case .link, .missing: return try Files.facts(place)?.kind != .file || !Fitness.canBeRewritten(place)
        }
    }

    /// Returns whether a file that moult did not create stays at its path, and the database uses it.
    private func staysInPlace() throws -> Bool {
        switch database.kind {
        case .reference, .shared: false
        case .user: true
        // A matching file stays only if moult's own cache was there last. Any other file may contain user data, and a cache can
        // later be removed from quarantine.
        case .cache:
            try context.hadCache(at: context.path(of: database))
                && cacheFault() == nil
        }
    }

    /// Throws if the path of a cache has a link or a directory, which may lead to app data, unless the installed release has
    /// its cache there.
    private func refuseForeignCache(_ occupant: Occupant) throws {
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
    private func strays() throws -> String? {
        let path = context.path(of: database)
        for suffix in SidecarSuffixes.withRows where try context.store.look(path + suffix) != .nothing {
            return "the file is missing, and only \(path)\(suffix) is left"
        }
        return nil
    }

    /// Returns why the cache must be set aside, with its sidecars: it does not open, or does not have the schema of the release. Nil
    /// if it stays or does not exist. A cache can be recreated.
    private func cacheFault() throws -> String? {
        guard let schema = database.identity.schema else {
            throw MoultError(
                .occupied, .refused, what: "databases.\(database.name).identity.schema is missing",
                why:
                    "without this field, moult cannot check whether an existing cache matches release \(context.release.version)",
                now: "Pack and publish the release again. `moult pack` adds this field.")
        }
        let path = context.store.path(context.path(of: database))
        if case .sealedLink = try context.store.look(path) {
            // If the release turns a read-only database into a cache, the link is removed separately.
            return nil
        }
        switch try Fitness.of(path, judge: { try differs($0, schema: schema) }) {
        case .fits, .missing: return nil
        case .unfit(let why, _): return why
        case .unknown(let error):
            // A lock or a missing permission says nothing about the cache.
            if error.isAboutAccess { throw error }
            return error.why ?? error.what
        }
    }

    private func differs(_ connection: Connection, schema: String) throws -> String? {
        let found = try Identity(of: connection)
        // The release's own file has moult's tables if its source comes from a store, and a cache has them if it was a shared
        // database before.
        let isSame = try [found.shape, .ofContent(connection)].contains {
            "sha256:\(try SHA256.digest(of: Array($0.canonicalText.utf8)).hex)" == schema
        }
        if !isSame { return "its schema does not match release \(context.release.version)" }
        return database.compatible?.fault(
            applicationID: Int(found.applicationID), userVersion: Int(found.userVersion))
    }
}
