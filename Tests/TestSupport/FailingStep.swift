import MoultBasics
package import StepKit

/// A step that fails at a given point, and runs after a built-in step.
package struct FailingStep: CustomStep {
    package enum Pass: String, CaseIterable, Sendable { case plan, prepare, apply, check }

    package let name = "test.failing"
    package let summary = "fails at the given point"
    private let pass: Pass
    private let phase: Phase

    package struct Failed: Error {}

    package init(pass: Pass, phase: Phase) { (self.pass, self.phase) = (pass, phase) }

    package func plan(_ context: PlanContext) throws -> [Effect] {
        if pass == .plan { throw Failed() }
        return [effect(phase, nil, .custom(name: "fail", text: "fails", with: .null))]
    }
    package func prepare(_ effects: [Effect], _ context: PrepareContext) throws {
        if pass == .prepare { throw Failed() }
    }
    package func apply(_ effect: Effect, _ context: ApplyContext) throws { if pass == .apply { throw Failed() } }
    package func check(_ effect: Effect, _ context: ApplyContext) throws { if pass == .check { throw Failed() } }
    package func undo(_ effect: Effect, _ context: ApplyContext) throws {}
}
