import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// An update stops in the middle, at each of its effects, as if the process had crashed there.
@Suite struct CrashRecoveryTests {
    /// A step that copies the store and then blocks its thread forever: the copy is in the state after a crash at this
    /// moment.
    struct CopyingStep: CustomStep {
        let name = "test.copying"
        let summary = "copies the store as it is now"
        let phase: Phase
        let pass: FailingStep.Pass
        let copy: @Sendable () throws -> Void

        func plan(_ context: PlanContext) throws -> [Effect] {
            [effect(phase, nil, .custom(name: "copy", text: "copies", with: .null))]
        }
        func prepare(_ effects: [Effect], _ context: PrepareContext) throws { if pass == .prepare { try copy() } }
        func apply(_ effect: Effect, _ context: ApplyContext) throws { if pass == .apply { try copy() } }
        func undo(_ effect: Effect, _ context: ApplyContext) throws {}
    }

    @Test(arguments: [FailingStep.Pass.prepare, .apply], Phase.allCases)
    func `recovery undoes an update interrupted before its decision, and finishes one interrupted after it`(
        pass: FailingStep.Pass, phase: Phase
    )
        throws
    {
        let use: JSON = [["step": "test.copying", "after": .string(phase.rawValue)]]
        let world = try World(top: [.init("steps", use)])
        let copy = world.scratch.path("crashed")
        let step = CopyingStep(phase: phase, pass: pass) { [store = world.store] in
            try Shell.must(["cp", "-a", store, copy])
        }
        _ = try world.orchestrator([step]).update(ReleaseFile(world.second))
        let idle = CopyingStep(phase: phase, pass: .plan) {}
        let crashed = try Orchestrator(root: copy, steps: .builtIn.adding([idle]))
        #expect(try crashed.isUnfinished())
        #expect(try Status(of: StoreSnapshot(crashed.layout)).unfinished.updates == ["an update to 2.0.0"])
        let settled = try crashed.recover()
        #expect(settled.map(\.ending) == [pass == .prepare ? .cleaned : .finished])
        #expect(try !crashed.isUnfinished())
        let last = try History.read(crashed.layout).entries.last
        #expect(last?.outcome == (pass == .prepare ? .cleaned : .finished))
        #expect(
            try Status(of: StoreSnapshot(crashed.layout)).current?.version == Version(pass == .prepare ? 1 : 2, 0, 0))
        // A second recovery changes nothing.
        let after = try Tree(copy)
        #expect(try crashed.recover().isEmpty)
        #expect(try Tree(copy) == after)
    }

    /// A reader that connects does not need to run a command first.
    @Test(arguments: [FailingStep.Pass.prepare, .apply])
    func `connecting also recovers an interrupted update`(pass: FailingStep.Pass) throws {
        let use: JSON = [["step": "test.copying", "after": "delete"]]
        let world = try World(top: [.init("steps", use)])
        let copy = world.scratch.path("crashed")
        let step = CopyingStep(phase: .delete, pass: pass) { [store = world.store] in
            try Shell.must(["cp", "-a", store, copy])
        }
        _ = try world.orchestrator([step]).update(ReleaseFile(world.second))
        let idle = CopyingStep(phase: .delete, pass: .plan) {}
        let connection = try Store(at: copy, steps: [idle]).connect()
        let version = pass == .prepare ? "1.0.0" : "2.0.0"
        #expect(try connection.texts("SELECT DISTINCT release FROM food.food") == [[version]])
        #expect(try connection.texts("SELECT DISTINCT release FROM codes.codes") == [[version]])
        try connection.close()
        #expect(try !Orchestrator(root: copy, steps: .builtIn).isUnfinished())
    }
}
