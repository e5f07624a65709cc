import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// moult uses both built-in steps and steps from other packages only through the public protocol.
@Suite struct OutsideStepsTests {
    /// A step from another package that wraps a built-in step. moult does not distinguish the two.
    private struct Outside: Step {
        let inner: any Step
        var name: String { inner.name }
        var summary: String { inner.summary }
        func plan(_ context: PlanContext) throws -> [Effect] { try inner.plan(context) }
        func examine(_ effects: [Effect], _ context: PrepareContext) throws { try inner.examine(effects, context) }
        func prepare(_ effects: [Effect], _ context: PrepareContext) throws { try inner.prepare(effects, context) }
        func check(_ effect: Effect, _ context: ApplyContext) throws { try inner.check(effect, context) }
        func clean(_ ending: Ending, _ context: ApplyContext) throws { try inner.clean(ending, context) }
    }

    private func outside() throws -> StepSet {
        func step(_ phase: Phase) throws -> any Step { Outside(inner: try #require(StepSet.builtIn.builtIn(phase))) }
        return StepSet(
            check: try step(.check), delete: try step(.delete), copy: try step(.copy), attach: try step(.attach),
            verify: try step(.verify))
    }

    @Test func `steps from another package can replace the built-in steps`() throws {
        let world = try World(installed: false)
        let orchestrator = try Orchestrator(root: world.store, steps: outside())
        _ = try orchestrator.update(ReleaseFile(world.first))
        let store = Store(at: world.store)
        let connection = try store.connect()
        try connection.execute("INSERT INTO note VALUES('mine')")
        try connection.close()
        _ = try orchestrator.update(ReleaseFile(world.second))
        #expect(try store.isCurrent(world.second))
        let after = try store.connect()
        #expect(try after.rows("SELECT text FROM note") == [["mine"]])
        try after.close()
        _ = try orchestrator.rollback(to: nil, reason: "")
        #expect(try store.isCurrent(world.first))
    }

    /// A step from another package with any changes, which it does not apply.
    private struct Idle: Step {
        let name = "acme.idle"
        let summary = "applies nothing"
        let change: Change
        func plan(_ context: PlanContext) -> [Effect] { [effect(.copy, "food", change)] }
    }

    private func update(with change: Change) throws -> World {
        let world = try World(top: [.init("steps", [["step": "acme.idle", "after": "copy"]])])
        let steps = StepSet.builtIn.adding([Idle(change: change)])
        _ = try Orchestrator(root: world.store, steps: steps).update(ReleaseFile(world.second))
        return world
    }

    /// Only the type `CustomStep` has `apply` and `undo`, so such a plan could neither be applied nor undone.
    @Test func `a plan with a custom change is refused if its step cannot apply it`() throws {
        let error = #expect(throws: MoultError.self) {
            try update(with: .custom(name: "x", text: "x happens", with: .null))
        }
        #expect(error?.what == "the step acme.idle cannot apply its own change \"x happens\"")
        #expect(error?.outcome == .refused)
    }

    @Test func `the core applies all other changes of a step from another package`() throws {
        let world = try update(with: .link(path: "second.db", member: "food.db"))
        #expect(try Files.target(ofLink: "\(world.store)/second.db") == ".moult/current/food.db")
    }
}
