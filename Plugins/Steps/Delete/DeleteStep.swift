internal import MoultBasics
internal import MoultFiles
public import StepKit

/// Delete: takes what the release replaces, and what cannot be used, out of service. It destroys nothing.
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
        return try effects + adopt(context) + quarantine(context)
    }

    private func quarantine(_ context: PlanContext) throws -> [Effect] {
        try context.release.databases.filter { !$0.kind.isSealed }.compactMap { database in
            let fault =
                try database.kind == .cache
                ? CacheFitness(database: database, context: context).fault() : strays(beside: database, context)
            guard let why = fault else { return nil }
            return effect(.delete, database.name, .quarantine(path: context.path(of: database), why: why))
        }
    }

    /// What SQLite would take for a part of the file that is to be made.
    private func strays(beside database: Database, _ context: PlanContext) throws -> String? {
        guard try context.store.look(database.path) == .nothing else { return nil }
        for suffix in ["-journal", "-wal"] where try context.store.look(database.path + suffix) != .nothing {
            return "only \(database.path)\(suffix) is left of it"
        }
        return nil
    }

    /// Whatever is at the path: nobody asks whether it can be opened.
    private func reset(_ context: PlanContext) throws -> [Effect] {
        guard let database = context.only.flatMap(context.release.database) else { return [] }
        return [
            effect(.delete, database.name, .quarantine(path: context.path(of: database), why: context.reason))
        ]
    }

    private func retire(_ installed: Manifest, _ generation: String, _ context: PlanContext) throws -> [Effect] {
        let kept = Set(context.release.databases.filter(\.kind.isSealed).map(\.path))
        var effects: [Effect] = []
        for database in installed.databases where database.kind.isSealed {
            effects.append(effect(.delete, database.name, .retire(generation: generation)))
            if !kept.contains(database.path), case .link = try context.store.look(database.path) {
                effects.append(effect(.delete, database.name, .unlink(path: database.path)))
            }
        }
        return effects
    }

    private func adopt(_ context: PlanContext) throws -> [Effect] {
        let generation = try Adoption.generation(context)
        return try context.release.databases.filter(\.kind.isSealed).compactMap { database in
            switch try context.store.look(database.path) {
            case .nothing, .link: return nil
            case .file:
                try Adoption.refuseUsers(database, context)
                return effect(.delete, database.name, .adopt(path: database.path, generation: generation))
            case .directory, .other:
                throw MoultError(
                    Adoption.code, .refused, what: "\(context.store.path(database.path)) is in the way",
                    why: "it is no file, and the release has a database for that path",
                    now: "Move it away, and apply again.")
            }
        }
    }

    public func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        let paths = effects.compactMap { effect -> (name: String, path: String)? in
            guard case .adopt(let path, _) = effect.change, let name = effect.database else { return nil }
            return (name, path)
        }
        if !paths.isEmpty { try Adoption.prepare(paths, context) }
        if context.plan.purpose == .reset {
            for effect in effects { try Rescue(context: context).prepare(effect) }
        }
    }
}
