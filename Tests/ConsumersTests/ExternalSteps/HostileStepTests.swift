import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// Attacks by steps: each causes an error with the reason, and leaves the store unchanged.
@Suite(.tags(.thorough)) struct HostileStepTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let what: String
        var describe: String?
        var plan: String?
        var prepare: String?
        var apply: String?
        /// In seconds; short only if the timeout has to end the step.
        var timeout = 60
        /// The text of the error; if the update was undone, the reported text ends with it.
        let says: String
        var testDescription: String { what }
    }

    private static let result = #"echo '{"reply":"result"}'"#
    private static let effects = #"echo '{"reply":"result","effects":[]}'"#

    static let cases: [Case] = [
        // The protocol
        Case(
            what: "stray output", plan: "echo hello; \(effects)",
            says: "it printed something that is not a JSON object: \"hello\""),
        Case(
            what: "a list", plan: "echo '[]'; \(effects)",
            says: "it printed something that is not a JSON object: \"[]\""),
        Case(
            what: "an unknown reply", plan: #"echo '{"reply":"perhaps"}'; \#(effects)"#,
            says: "it printed a reply that the protocol does not define: \"{\"reply\":\"perhaps\"}\""),
        Case(
            what: "silence", plan: "exec sleep 60", timeout: 2, says: "it sent nothing for 2 s, and was killed"),
        Case(
            what: "a hang after a word", plan: #"echo '{"reply":"log","text":"well"}'; exec sleep 60"#,
            timeout: 2, says: "it took longer than 2 s, and was killed"),
        Case(what: "nothing said", plan: "exit 0", says: "it ended with status 0 and without a result"),
        Case(what: "a status", plan: "exit 3", says: "it ended with status 3 and without a result"),
        Case(
            what: "a result and a status", plan: "\(effects); exit 1",
            says: "it returned a result, but ended with status 1"),
        Case(what: "two results", plan: "\(effects); \(effects)", says: "it returned two results"),
        Case(
            what: "more after the result", plan: #"\#(effects); echo '{"reply":"log","text":"x"}'"#,
            says: "it printed more after its result: \"{\"reply\":\"log\",\"text\":\"x\"}\""),
        Case(
            what: "a torn line", plan: #"\#(effects); printf '{"reply'"#,
            says: "it printed something that is not a JSON object: \"{\"reply\""),
        Case(what: "a signal", plan: "kill -SEGV $$; exec kill -9 $$", says: "it was killed by signal 11"),
        Case(
            what: "a line over 1 MiB", plan: "head -c 1100000 /dev/zero | tr '\\0' x; echo",
            says: "it printed a line of more than 1 MiB"),
        Case(
            what: "a flood", plan: #"exec yes '{"reply":"log","text":"\#(String(repeating: "x", count: 4000))"}'"#,
            says: "it printed more than 16 MiB"),
        Case(
            what: "another protocol",
            describe: #"echo '{"reply":"result","protocol":2,"name":"a","summary":"b","planIsPure":true}'"#,
            says: "its result is invalid: the step uses protocol 2, but this version of moult uses protocol 1"),
        Case(
            what: "a plan that may change things",
            describe: #"echo '{"reply":"result","protocol":1,"name":"a","summary":"b"}'"#,
            says:
                "its result is invalid: the step does not declare that planning changes nothing (\"planIsPure\": true)"
        ),
        Case(
            what: "an intent in a plan", plan: #"echo '{"reply":"intent","id":1,"intent":{}}'; read -r x; \#(effects)"#,
            says: "it printed a reply that the protocol does not define: \"intent\""),
        // Changes that only moult may make
        Case(
            what: "a change of the core's",
            plan: #"echo '{"reply":"result","effects":[{"change":{"do":"switchCurrent","to":"../../etc"}}]}'"#,
            says:
                "its result is invalid: the plan has the change \"point\", but an external step may plan only confirm, keep and custom"
        ),
        Case(
            what: "a path that is not granted",
            plan:
                #"echo '{"reply":"result","effects":[{"change":{"do":"custom","name":"x","text":"x","with":{"writes":["/etc/passwd"]}}}]}'"#,
            says:
                "it exceeded its plan: \"writable\" in moult.json does not include /etc/passwd, which the plan writes to"
        ),
        Case(
            what: "a way out by dots",
            plan:
                #"echo '{"reply":"result","effects":[{"change":{"do":"custom","name":"x","text":"x","with":{"writes":["GRANTED/../release/x"]}}}]}'"#,
            says: "it exceeded its plan: the directory of GRANTED/../release/x does not exist"),
        // Behaviour of the step
        Case(
            what: "writes in plan", plan: "echo x > STORE/new 2> /dev/null || exit 4; \(effects)",
            says: "it ended with status 4 and without a result"),
        Case(
            what: "writes in describe", describe: "touch STORE/moult.json 2> /dev/null || exit 4",
            says: "it ended with status 4 and without a result"),
        Case(
            what: "a network in plan", plan: "exec python3 -c 'import socket; socket.socket()' 2> /dev/null",
            says: "it ended with status 1 and without a result"),
        Case(
            what: "writes elsewhere in apply", plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply: "echo x > STORE/new 2> /dev/null || exit 4; \(result)",
            says: "it ended with status 4 and without a result"),
        Case(
            what: "writes beside in apply", plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply: "echo x > GRANTED/other 2> /dev/null || exit 4; \(result)",
            says: "it ended with status 4 and without a result"),
        Case(
            what: "intends what was not planned", plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply: #"echo '{"reply":"intent","id":1,"intent":{"path":"/etc/passwd"}}'; read -r x; \#(result)"#,
            says: "it exceeded its plan: an intent has the path /etc/passwd"),
        Case(
            what: "forges the journal in prepare",
            prepare:
                "cd STORE/.moult/transactions/* && mv plan.json decided.json || exit 4; \(result)",
            says: "it ended with status 4 and without a result; on standard error: "),
        Case(
            what: "opens the mode of a file in apply", plan: Programs.planned("x", writes: ["GRANTED"]),
            apply: "chmod 777 STORE/moult.json 2> /dev/null || exit 5; \(result)",
            says: "it ended with status 5 and without a result"),
    ]

    @Test(arguments: cases) func `a hostile step changes nothing, and its error is reported`(_ bad: Case) throws {
        let scratch = try Scratch()
        let program = try Programs.shell(
            scratch, describe: bad.describe, plan: bad.plan, prepare: bad.prepare, apply: bad.apply)
        let world = try StepWorld(program, timeout: bad.timeout)
        try world.adapt(program)
        let before = try Tree(
            world.store, skipping: [".moult/history.jsonl", ".moult", ".moult/lock", ".moult/transactions", ""])
        let outside = try Tree(world.granted)
        let error = try #require(try world.failure())
        let says = bad.says.split(separator: "GRANTED", omittingEmptySubsequences: false).joined(
            separator: world.granted)
        #expect(error.why?.contains(says) == true, "\(error)")
        #expect(error.outcome == (bad.apply == nil ? .failed : .undone), "\(error)")
        if bad.apply == nil {
            #expect(
                try Tree(
                    world.store, skipping: [".moult/history.jsonl", ".moult", ".moult/lock", ".moult/transactions", ""])
                    == before)
            #expect(try Tree(world.granted) == outside)
        }
        #expect(try world.world.versions() == ["1.0.0"])
        #expect(try Files.facts("\(world.store)/new") == nil)
        #expect(try !world.world.orchestrator().isUnfinished())
    }

    /// Background processes end with the step, even if they ignore signals.
    @Test(arguments: [
        "(trap '' TERM HUP; exec sleep 4321.5) & \(effects)",
        "(setsid sleep 4321.5 || exec sleep 4321.5) 2> /dev/null & \(effects)",
        "trap '' TERM; sleep 4321.5; sleep 4321.5",
    ])
    func `no process of a hostile step survives`(_ plan: String) throws {
        let scratch = try Scratch()
        // The duration of the sleep identifies the processes of this test.
        let mark = "4321.\(getpid())\(Int.random(in: 1000...9999))"
        let marked = plan.split(separator: "4321.5", omittingEmptySubsequences: false).joined(separator: mark)
        let world = try StepWorld(try Programs.shell(scratch, plan: marked), timeout: 1)
        _ = try? world.plan()
        try expectNoProcess(mark)
    }

    /// Expects that no process of the step is left. The kernel removes killed processes a moment later.
    private func expectNoProcess(_ mark: String) throws {
        func running() throws -> String { try Shell.run(["pgrep", "-f", "sleep \(mark)"]).output }
        for _ in 0..<500 where try running() != "" { usleep(10_000) }
        #expect(try running() == "")
    }

    @Test func `a step program that was replaced after it was trusted is not run`() throws {
        let scratch = try Scratch()
        let program = try Programs.shell(scratch)
        let world = try StepWorld(program)
        _ = try world.plan()
        let evil = try Programs.shell(scratch, plan: "touch \(scratch.path("evil")); \(Self.effects)")
        #expect(evil == program)
        let error = try #require(try world.failure())
        #expect(error.outcome == .refused)
        #expect(error.why?.hasPrefix("\(program) has changed since it was trusted: its SHA-256 is ") == true)
        #expect(try Files.facts(scratch.path("evil")) == nil)
    }

    /// The running process uses a sealed copy of the program, so it cannot change the program.
    @Test func `a step cannot rewrite its own program`() throws {
        let scratch = try Scratch()
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply: "(echo evil > /dev/fd/3) 2> /dev/null && exit 7; echo fine > GRANTED/file; \(Self.result)")
        let world = try StepWorld(program)
        try world.adapt(program)
        try world.update()
        #expect(try Files.read("\(world.granted)/file", limit: 10) == Array("fine\n".utf8))
    }

    @Test func `a step cannot send signals to moult`() throws {
        let scratch = try Scratch()
        let program = try Programs.shell(
            scratch, apply: "kill -9 $PPID 2> /dev/null; \(Self.result)")
        let world = try StepWorld(program)
        try world.update()
        #expect(try world.world.versions() == ["2.0.0"])
    }

    /// If the kernel lets the step kill moult after all, the step ends as well, and the next command recovers.
    @Test func `a crash of moult ends the step, and the next command recovers`() throws {
        let scratch = try Scratch()
        let mark = "4322.\(getpid())\(Int.random(in: 1000...9999))"
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply: """
                test -s GRANTED/file && { \(Self.result); exit; }
                echo begun > GRANTED/file; sleep \(mark) & sleep \(mark)
                """, undo: "rm -f GRANTED/file; \(Self.result)")
        let world = try StepWorld(program)
        try world.adapt(program)
        let moult = try Background([BuiltMoult.path(), "apply", world.world.second, "--store", world.store])
        try moult.wait {
            try Files.facts("\(world.granted)/file").map { $0.size > 0 } ?? false
                && Shell.run(["pgrep", "-cf", "sleep \(mark)"]).output == "2\n"
        }
        moult.stop()
        // The kernel kills the process group when moult's end of the lifeline closes.
        try expectNoProcess(mark)
        #expect(try world.world.orchestrator().recover().map(\.ending) == [.finished])
        #expect(try world.world.versions() == ["2.0.0"])
        #expect(try Files.read("\(world.granted)/file", limit: 10) == Array("begun\n".utf8))
    }
}
