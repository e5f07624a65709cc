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

    private static let granted = "$(printf '%s' \"$message\" | sed 's/.*\"writable\":\\[\"\\([^\"]*\\)\".*/\\1/')"

    /// Returns a step that writes one file, with these shell commands to apply and to undo that.
    private func writing(apply: String, undo: String) throws -> [String] {
        let plan =
            #"echo '{"reply":"result","effects":[{"change":{"do":"custom","name":"x","text":"a line","with":{"writes":["'"\#(Self.granted)"'"]}}}]}'"#
        let result = "echo '{\"reply\":\"result\"}'"
        return try failures(
            Programs.shell(
                scratch, plan: plan, apply: "d=\(Self.granted); \(apply); \(result)",
                undo: "d=\(Self.granted); \(undo); \(result)"))
    }

    @Test func `the kit rejects a step whose undo deletes a file that was there before`() throws {
        let found = try writing(apply: "echo new > $d/hook", undo: "rm -f $d/hook")
        #expect(
            found.contains {
                $0.hasPrefix("undo with existing files: a line: after undoing the change, ")
                    && $0.contains("/hook does not have")
            }, "\(found)")
        #expect(!found.contains { $0.hasPrefix("undo: ") }, "\(found)")
    }

    @Test func `the kit rejects a step whose undo restores a file with another mode`() throws {
        let found = try writing(
            apply:
                "[ -e $d/old ] || [ ! -e $d/hook ] || cp $d/hook $d/old; echo new > $d/next; chmod 600 $d/next; mv $d/next $d/hook",
            undo: "rm -f $d/hook; [ ! -e $d/old ] || { cat $d/old > $d/hook; chmod 600 $d/hook; rm $d/old; }")
        #expect(found.contains { $0.hasPrefix("undo with existing files: a line: ") }, "\(found)")
    }

    @Test func `the kit accepts a step that restores or refuses a file that was there before`() throws {
        let keeps = try writing(
            apply:
                "[ -e $d/old ] || [ ! -e $d/hook ] || [ \"$(cat $d/hook)\" = new ] || mv $d/hook $d/old; echo new > $d/hook",
            undo:
                "[ ! -e $d/old ] && [ \"$(cat $d/hook 2> /dev/null)\" = new ] && rm $d/hook; [ ! -e $d/old ] || mv $d/old $d/hook"
        )
        #expect(keeps == [])
        let refuses = try writing(
            apply:
                "[ ! -e $d/hook ] || [ \"$(cat $d/hook)\" = new ] || { echo '{\"reply\":\"error\",\"message\":\"hook exists\"}'; exit 1; }; echo new > $d/hook",
            undo: "[ \"$(cat $d/hook 2> /dev/null)\" != new ] || rm $d/hook")
        #expect(refuses == [])
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
