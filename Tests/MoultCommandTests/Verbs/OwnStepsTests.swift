import Moult
import MoultBasics
import StepKit
import TestSupport
import Testing

@testable import MoultCommand

/// A command with additional steps.
@Suite struct OwnStepsTests {
    private struct Reindex: Step {
        let name = "acme.reindex"
        let summary = "makes an index"
        func plan(_ context: PlanContext) throws -> [Effect] { [effect(.copy, nil, .confirm("an index will be made"))] }
    }

    private func run(_ words: String..., with step: any Step = Reindex()) throws -> (
        status: Int32, out: String, err: String
    ) {
        let (out, err) = (try Sink(), try Sink())
        let console = Console(environment: Environment([:]), out: out.descriptor, err: err.descriptor)
        let runner = Runner(
            commands: Command.all, environment: Environment([:]), console: console,
            steps: StepSet.builtIn.adding([step]))
        return (runner.run(words).rawValue, out.text, err.text)
    }

    @Test func `steps lists the additional steps`() throws {
        let list = try run("steps")
        #expect(list.out.hasSuffix("acme.reindex   any     this command  makes an index\n"))
        let json = try JSON(parsing: run("steps", "--json").out, source: "stdout")
        #expect(json["steps"]?.array?.last?["builtIn"]?.bool == false)
    }

    private struct Picky: Step {
        let name = "acme.reindex"
        let summary = "refuses"
        func plan(_ context: PlanContext) throws -> [Effect] {
            throw MoultError(.refused, .refused, what: "the parameter \"table\" is missing")
        }
    }

    @Test func `the trial of pack runs the additional steps of the command`() throws {
        let scratch = try Scratch()
        try scratch.must("sqlite3 food.db 'CREATE TABLE t(x)'")
        try scratch.write(
            "draft.json",
            """
            {"manifest": 1, "product": "org.example.food", "version": "1.0.0",
             "databases": {"food": {"kind": "reference", "source": "food.db"}},
             "steps": [{"step": "acme.reindex", "after": "copy"}]}
            """)
        let refused = try run("pack", scratch.path("draft.json"), "-o", scratch.path("rel"), with: Picky())
        #expect(refused.status == 3 && refused.err.contains(#"the parameter "table" is missing"#), "\(refused)")
        let packed = try run("pack", scratch.path("draft.json"), "-o", scratch.path("rel"))
        #expect(packed.status == 0 && !packed.out.contains("was not run"), "\(packed)")
    }

    @Test func `an update runs the additional steps that the manifest names`() throws {
        let use: JSON = [["step": "acme.reindex", "after": "copy"]]
        let world = try VerbWorld(top: [.init("steps", use)])
        try world.install()
        let manifest = world.scratch.path(world.first)
        let plan = try run("plan", manifest, "--store", world.store)
        #expect(plan.status == 2)
        #expect(plan.out.contains("\n  copy     an index will be made\n  attach "))
        // The built command has no additional steps, so it refuses the release.
        #expect(
            try world.run("moult plan rel/test-1.0.0.json") == (
                3, "",
                """
                moult: error: the release needs the step acme.reindex: this version of moult does not have this step
                  If the step is a program, add it to "steps" in moult.json: moult help steps

                """
            ))
    }
}
