internal import MoultBasics
internal import MoultFiles
public import StepKit

/// Delete: takes what the release replaces out of service. It destroys nothing.
public struct DeleteStep: Step {
    public let name = "delete"
    public let summary = "takes the old databases out of service; their files are kept"

    public init() {}

    public func plan(_ context: PlanContext) throws -> [Effect] {
        var effects: [Effect] = []
        if let installed = context.installed, let generation = context.installedGeneration,
            generation != context.generation
        {
            effects += try retire(installed, generation, context)
        }
        return try effects + adopt(context)
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
    }
}
