internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
public import StepKit

/// Copy: installs the release's files. Read-only files form a generation that a single rename makes current; a user database is
/// created from its template if it is missing, or migrated to the new schema.
public struct CopyStep: Step {
    public let name = "copy"
    public let summary = "stages the new generation, switches to it, and updates the writable databases"

    public init() {}

    public func plan(_ context: PlanContext) throws -> [Effect] {
        if context.purpose == .reset { return try effectsOfReset(context) }
        var effects: [Effect] = []
        let source = try Source(context: context)
        for database in context.release.databases where database.kind.isSealed {
            effects.append(effect(.copy, database.name, try change(for: database, source, context)))
        }
        for database in context.release.databases where !database.kind.isSealed && source.isStaged {
            effects.append(effect(.copy, database.name, .keepTemplate(member: database.member, size: database.size)))
        }
        for database in context.release.databases where database.kind.isMigrated {
            effects.append(effect(.copy, database.name, try UserSchema(database: database, context: context).change()))
        }
        for database in context.release.databases where database.kind.isDisposable {
            effects.append(effect(.copy, database.name, try cache(database, context)))
        }
        // Writable files are replaced after `current` is switched, because nothing may follow a live replacement.
        let replacements = try context.release.databases.filter(\.kind.isReplaced).map { database in
            effect(.copy, database.name, try SharedContent(database: database, context: context).change())
        }
        if source.isStaged { effects.append(effect(.copy, nil, .installGeneration(generation: context.generation))) }
        if context.generation != context.installedGeneration {
            effects.append(
                effect(.copy, nil, .switchCurrent(to: context.generation, from: context.installedGeneration)))
        }
        // An undo leaves a new file, because an app may have written to it, so the file gets its name when nothing else can fail.
        // A file that takes the place of another one is not delayed, because the undo puts the old one back.
        let isLate = { (effect: Effect) in
            guard case .create(let path, _) = effect.change else { return false }
            return !context.isSetAside(path)
        }
        let creations = effects.filter(isLate)
        effects.removeAll(where: isLate)
        return try effects + links(context) + creations + replacements
    }

    private func cache(_ database: Database, _ context: PlanContext) throws -> Change {
        let path = context.path(of: database)
        if context.isSetAside(path) { return .create(path: path, size: database.size) }
        switch try context.occupant(of: database) {
        case .nothing, .generationLink: return .create(path: path, size: database.size)
        case .missing(let before): throw context.missing(before, at: path)
        case .own, .cache, .claimed, .foreign, .link, .obstacle:
            // The delete step has determined whether the existing cache matches.
            guard let reason = context.displacement(at: path) else {
                return .keep(why: "its schema matches the release")
            }
            return .replace(Replacement(database, at: path, reason))
        }
    }

    private func effectsOfReset(_ context: PlanContext) throws -> [Effect] {
        if let restored = context.restoringTable { return try effectsOfRestore(restored, context) }
        guard let database = context.only.flatMap(context.release.database) else { return [] }
        let path = context.path(of: database)
        guard let reason = context.displacement(at: path) else {
            return [effect(.copy, database.name, .create(path: path, size: database.size))]
        }
        try context.requireTrustedFile(database)
        var new = Replacement(database, at: path, reason)
        if let restored = context.restoring { new.size = try Files.facts(restored)?.size ?? 0 }
        return [effect(.copy, database.name, .replace(new))]
    }

    private func effectsOfRestore(_ restored: RestoredTable, _ context: PlanContext) throws -> [Effect] {
        guard let database = context.only.flatMap(context.release.database), let file = context.restoring else {
            return []
        }
        let path = context.path(of: database)
        switch try context.store.look(path) {
        case .nothing: throw context.missing(database, at: path)
        case .directory, .other: throw try context.obstacle(at: path, database)
        case .link, .sealedLink: try context.requireTrustedFile(database)
        case .file: break
        }
        return [
            effect(
                .copy, database.name,
                .restoreRows(
                    path: path, table: restored.table, set: restored.set, size: try Files.facts(file)?.size ?? 0,
                    generations: restored.generations))
        ]
    }

    private func change(for database: Database, _ source: Source, _ context: PlanContext) throws -> Change {
        switch source {
        case .installed: return .keep(why: "unchanged")
        case .kept: return .restore(generation: context.generation)
        case .staged:
            guard database.place == .inPlace else { return .seal(member: database.member, size: database.size) }
            let target = "\(context.resources)/\(database.member)"
            guard let facts = try Files.factsThroughLinks(target), facts.kind == .file else {
                throw MoultError(
                    .userDatabase, what: "the database \(target) is missing",
                    why: "the manifest expects this file in the same directory",
                    now: "Put the file next to the manifest, or use another manifest.")
            }
            if facts.size != database.size {
                throw MoultError(
                    .userDatabase, what: "\(target) does not match the manifest",
                    why: "the file has \(facts.size) bytes, and the manifest says \(database.size)",
                    now: "Rebuild the database and the manifest together.")
            }
            return .linkInPlace(target: target, size: database.size)
        }
    }

    private func links(_ context: PlanContext) throws -> [Effect] {
        try context.release.databases.filter(\.kind.isSealed).compactMap { database in
            if try context.store.isLinked(database.path, to: database.member) { return nil }
            return effect(.copy, database.name, .link(path: database.path, member: database.member))
        }
    }

    /// Returns whether a user database stays unchanged.
    private func isKept(_ database: Database, _ effects: [Effect]) -> Bool {
        effects.contains { effect in
            guard database.kind.isMigrated, effect.database == database.name, case .keep = effect.change else {
                return false
            }
            return true
        }
    }

    public func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        for effect in effects {
            switch effect.change {
            case .seal(let member, _), .keepTemplate(let member, _):
                let staged = "\(context.stagedGeneration)/\(member)"
                try Files.rename(context.unpacked(member), to: staged)
                if let database = effect.database.flatMap(context.plan.release.database) {
                    try database.checkPreserve(in: staged, of: context.plan.release.version)
                    if isKept(database, effects) {
                        try UserSchema(database: database, context: context.plan).check(staged)
                    }
                }
            case .linkInPlace(let target, _):
                guard let database = effect.database.flatMap(context.plan.release.database) else { continue }
                try Files.symlink(to: target, at: "\(context.stagedGeneration)/\(database.member)")
            case .create(let path, _):
                try WritableStaging(context: context).stage(effect.database, as: path, isDurable: true)
            case .replace(let new):
                try WritableStaging(context: context).stage(effect.database, as: new.path, isDurable: false)
            case .restoreRows:
                guard let restored = context.plan.restoring else { continue }
                let waiting = Staging.restored(in: context.staging)
                try Files.copy(restored, to: waiting, mode: 0o600)
                try Files.seal(waiting, mode: 0o600)
            case .migrate(let path, let members, _, _, _):
                guard let database = effect.database.flatMap(context.plan.release.database) else { continue }
                try WritableStaging(context: context).tryMigrations(members, of: database, path: path)
            default: continue
            }
        }
    }
}

extension Replacement {
    /// The content of a release's database, for the file at a path.
    init(_ database: Database, at path: String, _ reason: KeptReason) {
        self.init(path: path, member: database.member, size: database.size, reason: reason)
    }
}

/// The source of a release's sealed files.
enum Source {
    /// The files are already installed.
    case installed
    /// The files are in a kept generation.
    case kept
    /// The files are staged, from the bundle or in place.
    case staged

    init(context: PlanContext) throws {
        guard try context.store.look(forGeneration: context.generation) == .directory else {
            self = .staged
            return
        }
        var intact = true
        do { try context.store.proveSeal(of: context.generation) } catch {
            // A damaged generation is replaced by a new one from the release; a rollback has no replacement.
            if context.purpose == .rollback { throw error }
            intact = false
        }
        // The app may now have the same release in a different directory, with the files that are used in place.
        let isElsewhere =
            try context.purpose == .update
            && context.release.databases.contains { database in
                let link = context.store.path(ofMember: database.member, in: context.generation)
                guard database.place == .inPlace, context.resources != Files.directory(of: link) else { return false }
                return try Files.target(ofLink: link) != "\(context.resources)/\(database.member)"
            }
        self = !intact || isElsewhere ? .staged : context.generation == context.installedGeneration ? .installed : .kept
    }

    var isStaged: Bool { self == .staged }
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
