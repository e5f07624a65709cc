import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// A step fails in each phase of each pass. Before the decision, nothing visible has changed; after the decision, the
/// update is undone.
@Suite struct FailureTests {
    @Test(arguments: FailingStep.Pass.allCases, Phase.allCases)
    func `a step that fails leaves the store unchanged`(pass: FailingStep.Pass, phase: Phase) throws {
        for inPlace in [true, false] {
            let use: JSON = [["step": "test.failing", "after": .string(phase.rawValue)]]
            let world = try World(inPlace: inPlace, top: [.init("steps", use)])
            let before = try world.visible()
            let orchestrator = try world.orchestrator([FailingStep(pass: pass, phase: phase)])
            let error = #expect(throws: (any Error).self) {
                try orchestrator.update(ReleaseFile(world.second))
            }
            if [.apply, .check].contains(pass) {
                #expect((error as? MoultError)?.outcome == .undone)
            } else {
                #expect(error is FailingStep.Failed)
            }
            #expect(try world.visible() == before)
            #expect(try world.versions() == ["1.0.0"])
            let last = try History.read(world.orchestrator().layout).entries.last
            switch pass {
            case .plan: #expect(last?.outcome == .done)
            case .prepare: #expect(last?.outcome == .failed)
            case .apply, .check: #expect(last?.outcome == .undone)
            }
        }
    }

    @Test func `a first install that fails leaves nothing`() throws {
        let use: JSON = [["step": "test.failing", "after": "verify"]]
        let world = try World(inPlace: true, installed: false, top: [.init("steps", use)])
        let before = try world.visible()
        #expect(throws: MoultError.self) {
            try world.orchestrator([FailingStep(pass: .apply, phase: .verify)]).update(
                ReleaseFile(world.second))
        }
        #expect(try world.visible() == before)
    }

    @Test func `an unknown step is refused, and the error names it`() throws {
        let world = try World(top: [.init("steps", [["step": "acme.reindex", "after": "copy"]])])
        let error = #expect(throws: MoultError.self) {
            try world.orchestrator().plan(ReleaseFile(world.second))
        }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "the release needs the step acme.reindex")
    }
}
