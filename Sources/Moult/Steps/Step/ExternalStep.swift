internal import MoultBasics
internal import MoultFiles
package import StepKit
internal import Synchronization

/// A step implemented by an external executable. Each message to it starts a separate, sandboxed process.
package struct ExternalStep: CustomStep, PlacedStep {
    let settings: StepSettings
    /// The step's place in the update, from the manifest or the settings; nil until `placed(by:)` sets it.
    var use: Manifest.StepUse?
    private let program = Program()

    /// Holds the copy of the executable, read once and reused for later messages.
    private final class Program: Sendable {
        let executable = Mutex<StepExecutable?>(nil)
    }

    package init(_ settings: StepSettings) { self.settings = settings }
    package var name: String { settings.name }
    package var summary: String { "runs \(settings.executable ?? "nothing")" }

    package func placed(by use: Manifest.StepUse) -> any Step {
        var step = self
        step.use = use
        return step
    }

    /// Returns the sealed copy of the program; throws unless the operator trusts exactly this program.
    package func trusted() throws -> StepExecutable {
        try program.executable.withLock { known in
            if let known { return known }
            let executable = try StepExecutable(settings.executable ?? "")
            guard let pinned = settings.sha256 else { throw refused("its program \(executable.path) is not trusted") }
            guard executable.sha256 == pinned else {
                throw refused(
                    "\(executable.path) has changed since it was trusted: its SHA-256 is \(executable.sha256.prefix(8))…, not \(pinned.prefix(8))…"
                )
            }
            known = executable
            return executable
        }
    }

    private func refused(_ why: String) -> MoultError {
        MoultError(
            .stepTrust, .refused, what: "the step \(name) is not run", why: why,
            now: "If you trust the program: \(moult: "steps", "trust", name)")
    }

    // MARK: messages to the step

    package func plan(_ context: PlanContext) throws -> [Effect] {
        let executable = try trusted()
        let (effects, level) = try Files.withScratchDirectory { scratch in
            let readable =
                [context.store.root, context.resources] + settings.writable
                + [context.policy.cacheRoot].compactMap(\.self)
            var conversation = conversation(executable, StepRights(readable: readable, plans: true), scratch)
            let with = try acceptedParameters(context, &conversation)
            return try StepPlanCall(step: self, context: context, with: with).ask(conversation)
        }
        context.note(name, level)
        return effects
    }

    /// Returns the parameters; throws if the program does not accept them.
    private func acceptedParameters(_ context: PlanContext, _ conversation: inout StepConversation) throws -> JSON {
        let description = try StepPlanCall.describe(&conversation)
        let with = parameters(context, use?.phase)
        if let schema = description.parameters, let fault = ParameterSchema(schema).fault(in: with, at: "with") {
            throw MoultError(
                .stepRefused, .refused, what: "the step \(name) does not accept these parameters", why: visible(fault),
                now: "To see its parameters: \(moult: "steps", "--json")")
        }
        return with
    }

    /// Asks the program for its description, and throws if it does not accept the parameters of the release. Nothing is planned.
    func checkParameters(_ context: PlanContext) throws {
        let executable = try trusted()
        try Files.withScratchDirectory { scratch in
            var conversation = conversation(executable, StepRights(plans: true), scratch)
            _ = try acceptedParameters(context, &conversation)
        }
    }

    package func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        guard effects.contains(where: \.isCustom) else { return }
        try StepPrepareCall(step: self, effects: effects, context: context).run(trusted())
    }

    package func apply(_ effect: Effect, _ context: ApplyContext) throws {
        try StepApplyCall(step: self, effect: effect, context: context).run("apply", trusted())
    }

    package func undo(_ effect: Effect, _ context: ApplyContext) throws {
        try StepApplyCall(step: self, effect: effect, context: context).run("undo", trusted())
    }

    package func clean(_ ending: Ending, _ context: ApplyContext) throws {
        let executable = try trusted()
        let own = own(context.staging)
        try Files.withScratchDirectory { scratch in
            let writable = try Files.facts(own) == nil ? [] : [own]
            let conversation = conversation(executable, StepRights(writable: writable), scratch)
            let effects = context.plan.planned.filter { $0.step == name }
            _ = try conversation.ask(
                "clean",
                .object([
                    .init("transaction", .string(Files.name(of: context.staging))),
                    .init("ending", .string(ending.rawValue)), .init("effects", .array(effects.map(\.json))),
                    .init("context", contextJSON(context.plan, nil)),
                ]))
        }
    }

    // MARK: parts

    func conversation(_ executable: StepExecutable, _ rights: StepRights, _ scratch: String) -> StepConversation {
        StepConversation(
            step: name, executable: executable, rights: rights, scratch: scratch, seconds: settings.timeout)
    }

    var sockets: Profile.Sockets {
        switch settings.network {
        case .none: .none
        case .local: .local
        case .all: .all
        }
    }

    /// Returns the step's own directory in a transaction. It exists from the prepare phase to the end of the update.
    func own(_ staging: String) -> String { "\(staging)/steps/\(name)" }

    /// Returns the manifest's parameters, overridden by those in the store's settings.
    func parameters(_ context: PlanContext, _ phase: Phase?) -> JSON {
        let use =
            use ?? settings.use
            ?? context.release.steps.first { $0.step == name && (phase == nil || $0.phase == phase) }
        return settings.with.reduce(use?.with ?? .object([])) { $0.setting($1.name, to: $1.value) }
    }
}

package struct StepDescription: Sendable, Equatable {
    package let name: String
    package let version: String
    package let summary: String
    /// The JSON Schema of its parameters.
    package let parameters: JSON?

    init(_ answer: JSON) throws {
        func wrong(_ why: String) -> Misbehaviour { .wrongAnswer(why) }
        guard let major = answer["protocol"]?.integer else { throw wrong("\"protocol\" is missing") }
        guard major == 1 else {
            throw wrong("the step uses protocol \(major), but this version of moult uses protocol 1")
        }
        guard let name = answer["name"]?.string, let summary = answer["summary"]?.string else {
            throw wrong("\"name\" and \"summary\" must be strings")
        }
        if let fault = PlainName.fault(name) { throw wrong("its name \"\(visible(name))\" \(fault)") }
        guard answer["planIsPure"]?.bool == true else {
            throw wrong("the step does not declare that planning changes nothing (\"planIsPure\": true)")
        }
        self.name = name
        self.summary = visible(summary)
        version = visible(answer["version"]?.string ?? "0")
        parameters = answer["parameters"]
        if let parameters, let fault = ParameterSchema(parameters).fault { throw wrong("\"parameters\": \(fault)") }
    }
}

extension ExternalStep {
    /// Returns the description of the update that every message except `describe` contains.
    func contextJSON(_ context: PlanContext, _ with: JSON?) -> JSON {
        .record([
            "step": name, "purpose": context.purpose.rawValue, "store": context.store.root,
            "product": context.release.product,
            "release": JSON.record(["version": context.release.version.description, "generation": context.generation]),
            "installed": context.installed.map { installed in
                JSON.record(["version": installed.version.description, "generation": context.installedGeneration])
            }, "phase": (use ?? settings.use)?.phase.rawValue, "when": (use ?? settings.use)?.when.rawValue,
            "with": with ?? .object([]), "databases": context.release.databases.map { json($0, context) },
            "planned": context.planned.map(\.json), "writable": settings.writable,
        ])
    }

    private func json(_ database: Database, _ context: PlanContext) -> JSON {
        .record([
            "name": database.name, "kind": database.kind.rawValue, "member": database.member,
            "path": context.store.path(context.path(of: database)), "size": database.size, "sha256": database.sha256,
        ])
    }
}

package struct ExternalState {
    /// `trusted`, `not trusted`, `changed`, `missing`, `unfit`, or `rules only` if the settings specify no program.
    package let state: String
    /// Why the program must not run.
    package let why: String?
    /// The step's description of itself, if it may run.
    package let description: StepDescription?

    package init(_ step: ExternalStep) throws {
        guard let path = step.settings.executable else {
            (state, why, description) = ("rules only", "moult.json does not specify an executable", nil)
            return
        }
        guard try Files.factsThroughLinks(path) != nil else {
            (state, why, description) = ("missing", "\(path) does not exist", nil)
            return
        }
        do {
            let executable = try step.trusted()
            description = try Files.withScratchDirectory { scratch in
                var conversation = step.conversation(executable, StepRights(plans: true), scratch)
                return try StepPlanCall.describe(&conversation)
            }
            (state, why) = ("trusted", nil)
        } catch let error as MoultError {
            let isPinned = step.settings.sha256 != nil
            state = error.code == .stepTrust ? (isPinned ? "changed" : "not trusted") : "unfit"
            why = error.why ?? error.what
            description = nil
        }
    }
}
