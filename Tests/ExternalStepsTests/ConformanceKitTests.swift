import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// The conformance kit finds problems in steps.
@Suite struct ConformanceKitTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func failures(_ program: String) throws -> [String] {
        var options = ConformanceKit.Options(executable: program)
        options.timeout = 3
        return try ConformanceKit(options).run().filter { $0.finding != nil }.map { "\($0.name): \($0.finding ?? "")" }
    }

    @Test func `the kit accepts a correct step`() throws {
        #expect(try failures(Programs.shell(scratch)) == [])
    }

    @Test func `the kit rejects a step that returns a result for an invalid request`() throws {
        let program = try Programs.write(
            """
            #!/bin/sh
            read -r message
            echo '{"reply":"result","protocol":1,"name":"test.step","summary":"s","planIsPure":true,"effects":[]}'
            """, scratch.path("yes"))
        #expect(
            try failures(program)
                == ["unknown message", "unsupported protocol", "garbage"].map {
                    "\($0): the step returned a result for an invalid request"
                })
    }

    @Test func `the kit rejects a step whose plan is not repeatable`() throws {
        let plan =
            #"echo '{"reply":"result","effects":[{"change":{"do":"confirm","text":"'"$(date +%N)$$"'"}}]}'"#
        #expect(
            try failures(Programs.shell(scratch, plan: plan)) == [
                "plan twice: the same request returned a different plan"
            ])
    }

    @Test func `the kit rejects a step whose apply is not idempotent and whose undo has no effect`() throws {
        let granted = "$(printf '%s' \"$message\" | sed 's/.*\"writable\":\\[\"\\([^\"]*\\)\".*/\\1/')"
        let plan =
            #"echo '{"reply":"result","effects":[{"change":{"do":"custom","name":"x","text":"a line","with":{"writes":["'"\#(granted)"'"]}}}]}'"#
        let program = try Programs.shell(
            scratch, plan: plan, apply: "echo x >> \"\(granted)/log\"; echo '{\"reply\":\"result\"}'")
        let found = try failures(program)
        #expect(found.contains { $0.hasPrefix("apply again: a line: after applying the change twice, ") }, "\(found)")
        #expect(found.contains { $0.hasPrefix("undo: a line: after undoing the change, ") }, "\(found)")
    }

    /// A step in Swift with a change that it cannot apply.
    private struct Idle: Step {
        let name = "acme.idle"
        let summary = "applies nothing"
        func plan(_ context: PlanContext) -> [Effect] {
            [effect(.copy, nil, .custom(name: "x", text: "x happens", with: .null))]
        }
    }

    @Test func `the kit rejects a step in Swift that cannot apply its own change`() throws {
        var options = ConformanceKit.Options(executable: "")
        options.own = Idle()
        let checks = try ConformanceKit(options).run()
        #expect(
            checks.compactMap(\.finding) == [
                "the step acme.idle cannot apply its own change \"x happens\": a step with custom changes must be a CustomStep"
            ])
    }

    @Test func `the kit rejects a step that does not describe itself`() throws {
        let found = try failures(try Programs.shell(scratch, describe: "exit 0"))
        #expect(
            found == [
                "handshake: the step under test failed during describe: it ended with status 0 and without a result"
            ])
    }
}
