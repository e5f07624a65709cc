import MoultBasics
import StepKit

/// A step that fails at a given point, and runs after a built-in step.
struct FailingStep: Step {
    enum Pass: String, CaseIterable, Sendable { case plan, prepare, apply }

    let name = "test.failing"
    let summary = "fails at the given point"
    let pass: Pass
    let phase: Phase

    struct Failed: Error {}

    func plan(_ context: PlanContext) throws -> [Effect] {
        if pass == .plan { throw Failed() }
        return [effect(phase, nil, .custom(name: "fail", text: "fails", with: .null))]
    }
    func prepare(_ effects: [Effect], _ context: PrepareContext) throws { if pass == .prepare { throw Failed() } }
    func apply(_ effect: Effect, _ context: ApplyContext) throws { if pass == .apply { throw Failed() } }
    func undo(_ effect: Effect, _ context: ApplyContext) throws {}
}
