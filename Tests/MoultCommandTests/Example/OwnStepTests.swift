import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A command with a step in Swift, from a separate package.
@Suite(.tags(.thorough, .slow)) struct OwnStepTests {
    static let people =
        "CREATE TABLE person(name TEXT, email TEXT); INSERT INTO person VALUES('Ada', 'ada@example.org');"
    static let with: JSON = ["database": "food", "table": "person", "column": "email"]

    private func world() throws -> World {
        let use: JSON = ["step": "example.mask", "after": "copy", "with": Self.with]
        return try World(Releases(top: [.init("steps", [use])], more: Self.people))
    }

    private func email(_ world: World) throws -> String {
        try Shell.must(["sqlite3", "\(world.store)/food.db", "SELECT email FROM person"])
    }

    @Test func `the example step passes the conformance kit`() async throws {
        let scratch = try Scratch()
        try Shell.must(["sqlite3", scratch.path("food.db")], input: Self.people)
        let ended = try await Project.run(
            [
                ExampleApps.path("Masked"), "steps", "test", "--database", "food.db", "--with", Self.with.line,
                "example.mask",
            ], in: scratch.path)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        #expect(ended.output.hasSuffix(" checks passed\n"))
    }

    @Test func `the example step masks the installed data`() async throws {
        let (world, masked) = (try world(), try await ExampleApps.path("Masked"))
        let plan = try Shell.run([masked, "plan", world.second, "--store", world.store])
        #expect(plan.output.contains("~ copy     food        person.email is masked\n"), "\(plan.output)\(plan.errors)")
        try Shell.must([masked, "apply", world.second, "--store", world.store])
        #expect(try email(world) == "a***\n")
        // The file does not contain the value, not even in a freed page.
        #expect(try Shell.run(["grep", "-c", "ada@example", "\(world.store)/food.db"]).output == "0\n")
        try Shell.must([masked, "verify", "--deep", "--store", world.store])
    }

    @Test func `the example step survives crashes`() async throws {
        let masked = try await ExampleApps.path("Masked")
        var fired = 0
        for (call, number) in [
            ("fsync", 2), ("fsync", 6), ("fsync", 9), ("fsync", 11), ("renameat2", 2), ("renameat2", 4),
            ("unlinkat", 2),
        ] {
            let world = try world()
            let ended = try Shell.run([
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)",
                "-e", "inject=\(call):signal=SIGKILL:when=\(number)", masked, "apply", world.second, "--store",
                world.store,
            ])
            if ended.status != 0 { fired += 1 }
            _ = try Shell.run([masked, "recover", "--store", world.store])
            #expect(try world.versions().count == 1, "\(call) \(number)")
            try Shell.must([masked, "apply", world.second, "--store", world.store])
            #expect(try email(world) == "a***\n", "\(call) \(number)")
        }
        #expect(fired >= 5)
    }
}
