package import StepKit

/// The steps that a command or an app has: one built in for each phase, and others by name.
package struct StepSet: Sendable {
    private let builtIn: [Phase: any Step]
    private let others: [any Step]

    package init(
        check: any Step, delete: any Step, copy: any Step, attach: any Step, verify: any Step, others: [any Step] = []
    ) {
        builtIn = [.check: check, .delete: delete, .copy: copy, .attach: attach, .verify: verify]
        self.others = others
    }

    package func adding(_ steps: [any Step]) -> StepSet { StepSet(builtIn: builtIn, others: others + steps) }

    private init(builtIn: [Phase: any Step], others: [any Step]) { (self.builtIn, self.others) = (builtIn, others) }

    package func builtIn(_ phase: Phase) -> (any Step)? { builtIn[phase] }

    package func named(_ name: String) -> (any Step)? {
        others.first { $0.name == name } ?? builtIn.values.first { $0.name == name }
    }

    /// Those that come with moult, in the order of their phases, then the others.
    package var listed: [(step: any Step, phase: Phase?)] {
        Phase.allCases.compactMap { phase in builtIn[phase].map { ($0, phase) } } + others.map { ($0, nil) }
    }

    /// The steps of a phase for a release, in order: others before, the built-in one, others after.
    ///
    /// A reset is about one database that the built-in steps know how to make: others have no say in it.
    package func steps(
        of phase: Phase, for manifest: Manifest, _ purpose: PlanContext.Purpose
    ) -> [any Step] {
        if purpose == .reset { return builtIn[phase].map { [$0] } ?? [] }
        func uses(_ when: Manifest.StepUse.When) -> [any Step] {
            manifest.steps.filter { $0.phase == phase && $0.when == when }.compactMap { use in
                others.first { $0.name == use.step }
            }
        }
        return uses(.before) + (builtIn[phase].map { [$0] } ?? []) + uses(.after)
    }

    package func missing(for manifest: Manifest) -> Manifest.StepUse? {
        manifest.steps.first { use in !others.contains { $0.name == use.step } }
    }

    package var names: [String] { listed.map(\.step.name) }
}
