import Moult
import MoultBasics
import StepKit
import TestSupport
import Testing

@testable import MoultCommand

@Suite struct PlanVerbTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    @Test func `the plan of an in-place release copies nothing`() throws {
        let maker = try ReleaseMaker(in: world.scratch.path("app"))
        _ = try maker.make("1.0.0", sequence: 1, [.reference("food", "CREATE TABLE food(name);", inPlace: true)])
        try world.install()
        let run = try world.run("moult plan app/test-1.0.0.json")
        #expect(
            run.out.hasPrefix(
                """
                test nothing -> 1.0.0   (store ./store, not signed)

                  check    first install
                + copy     food        8.00 KiB in place, not copied: \(world.scratch.path("app/food.db"))
                  attach   food as "food" (read-only)
                  verify   food: header, identity

                disk: needs \(try world.size("app/test-1.0.0.json")), 
                """))
    }

    @Test func `a saved plan is valid for its store, however the store's path is written`() throws {
        try world.install(world.first)
        try world.must("moult plan -q -o p -s rel/../store rel/test-2.0.0.json", status: 2)
        try world.must("ln -s . link")
        try world.must("moult apply -q --plan p -s link/store && moult status | grep -q 'test 2.0.0'")
        try world.must("moult plan -q -o q rel/test-1.0.0.json --allow-downgrade", status: 2)
        try world.must("moult init -q other --product org.example.test")
        #expect(try world.run("moult apply --plan q -s other").err.contains("it was made for the store"))
    }

    @Test func `plan writes only the given file`() throws {
        try world.install()
        #expect(try world.run("moult plan -q --output p rel/test-1.0.0.json --app 3.4.0").status == 2)
        let saved = try Plan(json: JSON(parsing: world.scratch.text("p"), source: "p"), source: "p")
        #expect(saved.to.version == Version(1, 0, 0))
        #expect(saved.request.app == Version(3, 4, 0))
        #expect(try world.run("moult plan -q --out p rel/test-1.0.0.json").status == 2)
        #expect(try world.run(": > empty; moult plan -q --out empty rel/test-1.0.0.json").status == 2)
    }

    /// On a terminal, a long line continues under the start of its text.
    @Test func `long lines of a plan are wrapped under their text`() throws {
        try world.install(world.first)
        let orchestrator = try Orchestrator(root: world.store, steps: .builtIn)
        let plan = try orchestrator.plan(ReleaseFile(world.scratch.path(world.second)))
        let lines = PlanLines(plan, details: false)
        let terminal = Terminal(width: 50)
        let shown = lines.effects.flatMap { lines.lines(of: $0, on: terminal).map(\.plain) }
        #expect(
            shown == [
                "  check    installed 1.0.0 < 2.0.0",
                "- delete   food        out of service, kept for",
                "                       rollback (generation",
                "                       \(try world.generation(world.first)))",
                "+ copy     food        8.00 KiB from the bundle,",
                "                       read-only",
                "= copy     user        the existing file is kept",
                #"  attach   user + food as "food" (read-only)"#,
                "  verify   food: digest, identity, quick_check",
            ])
    }
}
