import MoultBasics
import StepKit

/// A step that fails after the decision of an update, so that the update is undone.
struct FailsToApply: Step {
    let name = "test.fails"
    let summary = "fails when it is applied"

    struct Failed: Error {}

    func plan(_ context: PlanContext) throws -> [Effect] {
        [effect(.verify, nil, .custom(name: "fail", text: "fails", with: .null))]
    }
    func prepare(_ effects: [Effect], _ context: PrepareContext) throws {}
    func apply(_ effect: Effect, _ context: ApplyContext) throws { throw Failed() }
    func undo(_ effect: Effect, _ context: ApplyContext) throws {}
}
