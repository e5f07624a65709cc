internal import MoultBasics
package import StepKit

/// The steps of a command or an app: one built-in step for each phase, and others by name.
package struct StepSet: Sendable {
    private let builtIn: [Phase: any Step]
    private var others: [any Step]
    private var settings: [StepSettings] = []
    /// Creates the step for a program in the settings.
    package var external: (@Sendable (StepSettings) -> any Step)?

    package init(
        check: any Step, delete: any Step, copy: any Step, attach: any Step, verify: any Step, others: [any Step] = []
    ) {
        builtIn = [.check: check, .delete: delete, .copy: copy, .attach: attach, .verify: verify]
        self.others = others
    }

    package func adding(_ steps: [any Step]) -> StepSet {
        var set = self
        set.others += steps
        return set
    }

    package func adding(_ settings: [StepSettings]) throws -> StepSet {
        if settings.isEmpty { return self }
        var set = self
        set.settings = settings
        for step in settings where step.executable != nil {
            if named(step.name) != nil {
                throw MoultError(
                    .settings, what: "steps.\(step.name) in moult.json cannot have an \"executable\"",
                    why: "a built-in step has the same name", now: "Choose another name, or leave out \"executable\".")
            }
            if let external { set.others.append(external(step)) }
        }
        return set
    }

    package func builtIn(_ phase: Phase) -> (any Step)? { builtIn[phase] }

    package func named(_ name: String) -> (any Step)? {
        others.first { $0.name == name } ?? builtIn.values.first { $0.name == name }
    }

    /// The built-in steps in the order of their phases, then the others.
    package var listed: [(step: any Step, phase: Phase?)] {
        Phase.allCases.compactMap { phase in builtIn[phase].map { ($0, phase) } } + others.map { ($0, nil) }
    }

    /// Returns the steps of a phase for a release, in order: others before, the built-in one, others after.
    /// A reset concerns one database that the built-in steps know how to create, so other steps do not take part.
    package func steps(of phase: Phase, for manifest: Manifest, _ purpose: PlanContext.Purpose) -> [any Step] {
        if purpose == .reset { return builtIn[phase].map { [$0] } ?? [] }
        let uses = uses(for: manifest).filter { $0.phase == phase }
        func steps(_ when: Manifest.StepUse.When) -> [any Step] {
            uses.filter { $0.when == when }.compactMap { use in
                let step = others.first { $0.name == use.step }
                return (step as? any PlacedStep)?.placed(by: use) ?? step
            }
        }
        return steps(.before) + (builtIn[phase].map { [$0] } ?? []) + steps(.after)
    }

    /// Returns where steps run: as the operator configured, otherwise as in the manifest; the operator's parameters take
    /// precedence.
    package func uses(for manifest: Manifest) -> [Manifest.StepUse] {
        let placed = settings.compactMap(\.use)
        let named = manifest.steps.filter { use in !placed.contains { $0.step == use.step } }
        return (named + placed).map { use in
            var use = use
            for member in settings.first(where: { $0.name == use.step })?.with ?? [] {
                use.with = use.with.setting(member.name, to: member.value)
            }
            return use
        }
    }

    /// Returns the steps with effects in a plan that are not built in.
    func others(of plan: Plan) -> [any Step] {
        others.filter { step in plan.effects.contains { $0.step == step.name } }
    }

    func programs(of plan: Plan) -> [any Step] {
        others(of: plan).filter { step in settings.contains { $0.name == step.name && $0.executable != nil } }
    }

    /// Throws unless the release uses all required steps, and no forbidden or unknown ones.
    func check(_ manifest: Manifest) throws {
        let uses = uses(for: manifest)
        for step in settings {
            let isUsed = uses.contains { $0.step == step.name }
            if step.isForbidden, isUsed {
                throw MoultError(
                    .refused, .refused, what: "release \(manifest.version) uses the step \(step.name)",
                    why: "moult.json forbids it", now: "Use a release without this step.")
            }
            if step.isRequired, !isUsed {
                throw MoultError(
                    .refused, .refused, what: "release \(manifest.version) does not use the step \(step.name)",
                    why: "moult.json requires it",
                    now: "Use a release with this step, or specify where it runs: \"after\": \"copy\" in moult.json.")
            }
        }
        guard let use = uses.first(where: { use in !others.contains { $0.name == use.step } }) else { return }
        throw MoultError(
            .notBuilt, .refused, what: "the release needs the step \(use.step)",
            why: "this version of moult does not have this step",
            now: didYouMean(use.step, among: names)
                ?? "If the step is a program, add it to \"steps\" in moult.json: \(moult: "help", "steps")")
    }

    package var names: [String] { listed.map(\.step.name) }
}

extension Step {
    /// Returns the effects that the step plans; throws if it could not apply them.
    package func effects(in context: PlanContext) throws -> [Effect] {
        let effects = try plan(context)
        if let own = effects.first(where: \.isCustom), !(self is any CustomStep) {
            throw MoultError(
                .refused, .refused, what: "the step \(name) cannot apply its own change \"\(own.text)\"",
                why: "a step with custom changes must be a CustomStep",
                now: "Nothing was changed. Report this to the author of the step.")
        }
        return effects
    }
}

package protocol PlacedStep: Step {
    func placed(by use: Manifest.StepUse) -> any Step
}
