import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// `moult steps`: lists the installed steps, trusts programs, and tests them.
@Suite struct StepsVerbTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func run(_ world: StepWorld, _ words: String...) throws -> Shell.Ended {
        try Shell.run([BuiltMoult.path(), "steps"] + words + ["--store", world.store])
    }

    @Test func `steps lists programs with their state, and steps trust trusts a program`() throws {
        let program = try Programs.shell(scratch)
        let world = try StepWorld(program, trusted: false)
        func state() throws -> String? {
            let json = try JSON(parsing: Array(run(world, "--json").output.utf8), source: "stdout")
            return json["steps"]?.array?.last?["state"]?.string
        }
        #expect(try state() == "not trusted")
        let trusted = try run(world, "trust", "test.step")
        let digest = try StepExecutable(program).sha256
        #expect(trusted.output == "test.step: \(program) is now trusted\nSHA-256 \(digest)\n")
        #expect(try state() == "trusted")
        #expect(
            try run(world).output.hasSuffix("\ntest.step      after copy  moult.json, trusted  does nothing\n"))
        #expect(
            try run(world, "trust", "test.step").output
                == "test.step: \(program) was already trusted\nSHA-256 \(digest)\n")
        _ = try Programs.shell(scratch, plan: "exit 1")
        #expect(try state() == "changed")
        try Files.remove(program)
        #expect(try state() == "missing")
    }

    @Test func `steps trust accepts only steps with a program in the settings`() throws {
        let world = try StepWorld(try Programs.shell(scratch))
        let ended = try run(world, "trust", "test.stop")
        #expect(ended.status == 1)
        #expect(ended.errors.hasPrefix("moult: error: moult.json has no step test.stop with an executable\n"))
    }

    @Test func `steps test runs a program and reports problems`() throws {
        let moult = try BuiltMoult.path()
        let good = try Shell.run([moult, "steps", "test", try Programs.shell(scratch, name: "good")])
        #expect(good.status == 0, "\(good.errors)")
        #expect(good.output.hasSuffix(" checks passed\n"))
        let bad = try Programs.shell(scratch, name: "bad", undo: "echo oops")
        let ended = try Shell.run([moult, "steps", "test", "--json", bad])
        #expect(ended.status == 1)
        let lines = try ended.output.split(separator: "\n").map { try JSON(parsing: Array($0.utf8), source: "stdout") }
        let failed = try #require(lines.first { $0["passed"]?.bool == false })
        #expect(failed["check"]?.string == "undo of a change that was not started: something")
        #expect(
            failed["finding"]?.string?.hasSuffix("it printed something that is not a JSON object: \"oops\"") == true)
        #expect(lines.last?["event"]?.string == "result")
    }
}
