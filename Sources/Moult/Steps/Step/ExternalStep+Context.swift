internal import MoultBasics
internal import StepKit

extension ExternalStep {
    /// Returns the description of the update that every message except `describe` contains.
    func contextJSON(_ context: PlanContext, _ with: JSON?) -> JSON {
        .compact([
            "step": .string(name), "purpose": .string(context.purpose.rawValue), "store": .string(context.store.root),
            "product": .string(context.release.product),
            "release": [
                "version": .string(context.release.version.description), "generation": .string(context.generation),
            ],
            "installed": context.installed.map { installed in
                .compact([
                    "version": .string(installed.version.description),
                    "generation": .optional(context.installedGeneration),
                ])
            },
            "phase": .optional((use ?? settings.use)?.phase.rawValue),
            "when": .optional((use ?? settings.use)?.when.rawValue),
            "with": with ?? .object([]),
            "databases": .array(context.release.databases.map { json($0, context) }),
            "planned": .array(context.planned.map(\.json)),
            "writable": .array(settings.writable.map { .string($0) }),
        ])
    }

    private func json(_ database: Database, _ context: PlanContext) -> JSON {
        .compact([
            "name": .string(database.name), "kind": .string(database.kind.rawValue), "member": .string(database.member),
            "path": .string(context.store.path(context.path(of: database))), "size": .size(database.size),
            "sha256": .string(database.sha256),
        ])
    }
}
