import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import Synchronization
import TestSupport
import Testing

/// External steps in updates.
@Suite struct ExternalStepTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    @Test func `effects of a step are planned and applied in their phase`() throws {
        let log = scratch.path("granted-later")
        let program = try Programs.shell(
            scratch, plan: Programs.planned("a line in the log"), apply: "echo '{\"reply\":\"result\"}'")
        let world = try StepWorld(program, after: .verify)
        let plan = try world.plan()
        let effect = try #require(plan.effects.last)
        #expect((effect.step, effect.phase, effect.text) == ("test.step", .verify, "a line in the log"))
        #expect(plan.steps.map(\.step) == ["test.step"])
        #expect(plan.steps.first?.text.hasPrefix("planned without write access, enforced by Landlock ") == true)
        try world.update()
        #expect(try world.world.versions() == ["2.0.0"])
        #expect(try Files.facts(log) == nil)
    }

    @Test func `an intent is in the journal before the step acts`() throws {
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply: """
                echo '{"reply":"intent","id":7,"intent":{"path":"GRANTED/file"}}'; read -r ack
                test "$ack" = '{"message":"intentAck","id":7}' || exit 9
                test -s STORE/.moult/transactions/*/intent-1 || exit 8
                echo done > GRANTED/file; echo '{"reply":"result"}'
                """)
        let world = try StepWorld(program)
        try world.adapt(program)
        try world.update()
        #expect(try Files.read("\(world.granted)/file", limit: 100) == Array("done\n".utf8))
    }

    @Test func `the effects of a step are undone if the update fails later`() throws {
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply:
                "echo done > GRANTED/file; echo '{\"reply\":\"error\",\"message\":\"no\",\"hint\":\"Try it later.\"}'; exit 1",
            undo: ": > GRANTED/file; echo '{\"reply\":\"result\"}'")
        let world = try StepWorld(program)
        try world.adapt(program)
        let before = try world.world.visible()
        let error = try #require(try world.failure())
        #expect(error.outcome == .undone)
        #expect(error.why == "the step test.step failed during apply: no")
        #expect(error.now?.description == "Try it later.")
        #expect(try world.world.visible() == before)
        #expect(try Files.list(world.granted).isEmpty)
    }

    @Test func `parameters of a step are checked against its schema`() throws {
        let describe =
            #"echo '{"reply":"result","protocol":1,"name":"test.step","summary":"s","planIsPure":true,"parameters":{"type":"object","properties":{"size":{"type":"integer","minimum":1}},"additionalProperties":false}}'"#
        let program = try Programs.shell(scratch, describe: describe)
        let cases: [(JSON, String?)] = [
            (["size": 3], nil), (["size": 0], "with.size must be at least 1"),
            (["size": "3"], "with.size must be of type integer, but is a string"),
            (["seize": 3], "with.seize is not allowed"),
        ]
        for (with, fault) in cases {
            let world = try StepWorld(program, with: with)
            let error = try world.failure()
            #expect(error?.why == fault)
            #expect(error?.outcome == (fault == nil ? nil : .refused))
        }
    }

    @Test func `an update is refused if a step is not trusted, required but not run, or forbidden`() throws {
        let program = try Programs.shell(scratch)
        let untrusted = try StepWorld(program, trusted: false)
        #expect(try untrusted.failure()?.why == "its program \(program) is not trusted")
        let world = try StepWorld(program)
        try world.settings { $0.setting("after", to: nil).setting("required", to: true) }
        #expect(try world.failure()?.what == "release 2.0.0 does not use the step test.step")
        try world.settings {
            $0.setting("after", to: "copy").setting("required", to: nil).setting("forbidden", to: true)
        }
        #expect(try world.failure()?.why == "moult.json forbids it")
        try world.settings {
            $0.setting("forbidden", to: nil).setting("writable", to: [.string(world.world.scratch.path)])
        }
        #expect(try world.failure()?.why == "it contains \(world.store)/moult.json: the settings")
    }

    @Test func `only a program that no other user can change is run`() throws {
        let program = try Programs.shell(scratch)
        let world = try StepWorld(program)
        let cases: [(UInt32, String)] = [
            (0o777, "other users can write to it (mode 777)"), (0o775, "other users can write to it (mode 775)"),
            (0o644, "it is not executable"),
        ]
        for (mode, why) in cases {
            try Files.setMode(program, mode)
            #expect(try world.failure()?.why == why)
        }
        try Files.setMode(program, 0o755)
        if geteuid() == 0 {
            try Shell.must(["chown", "12345", program])
            #expect(try world.failure()?.why == "its owner is user 12345, but must be root or this user")
            try Shell.must(["chown", "0", program])
        }
        try Files.remove(program)
        try Shell.must(["mkfifo", program])
        #expect(try world.failure()?.why == "it is not a regular file")
        try Files.remove(program)
        #expect(try world.failure()?.why == "no such file")
    }

    /// Perl opens `/dev/fd/3` as the descriptor itself, so moult must reset the offset that the previous process left.
    @Test func `an interpreter can read a step's script from the descriptor`() throws {
        let program = try Programs.write(
            #"""
            #!/usr/bin/perl
            my $message = <STDIN>;
            if ($message =~ /^\{"message":"describe"/) {
                print '{"reply":"result","protocol":1,"name":"test.step","summary":"in Perl","planIsPure":true}', "\n";
            } elsif ($message =~ /^\{"message":"plan"/) {
                print '{"reply":"result","effects":[{"change":{"do":"custom","name":"x","text":"by Perl"}}]}', "\n";
            } else { print '{"reply":"result"}', "\n" }
            """#, scratch.path("step"))
        let world = try StepWorld(program)
        #expect(try world.plan().effects.contains { $0.text == "by Perl" })
        try world.update()
        #expect(try world.world.versions() == ["2.0.0"])
    }

    @Test func `a step in the manifest uses the program in the settings`() throws {
        let program = try Programs.shell(scratch, plan: Programs.planned("named by the manifest"))
        let top: [JSON.Member] = [.init("steps", [["step": "test.step", "after": "attach"]])]
        let world = try StepWorld(program, releases: Releases(top: top))
        try world.settings { $0.setting("after", to: nil) }
        let effect = try #require(try world.plan().effects.first { $0.step == "test.step" })
        #expect((effect.phase, effect.text) == (.attach, "named by the manifest"))
    }

    /// If a step fails on the message about the outcome, the failure is reported, and the outcome does not change.
    @Test(arguments: [Ending.done, .undone])
    func `a step is notified of the outcome of the update`(_ ending: Ending) throws {
        let program = try Programs.shell(
            scratch, apply: ending == .done ? nil : "exit 1",
            clean: """
                ending=$(printf '%s' "$message" | sed 's/.*"ending":"\\([a-z]*\\)".*/\\1/')
                echo '{"reply":"error","message":"the ending is '"$ending"'"}'
                """)
        let world = try StepWorld(program)
        let told = Mutex<[String]>([])
        let watcher = Watcher(tell: { event in
            if case .warning(let text) = event { told.withLock { $0.append(text.description) } }
        })
        do { try world.update(watcher) } catch let error as MoultError { #expect(error.outcome == .undone) }
        #expect(told.withLock { $0 } == ["the step test.step failed during clean: the ending is \(ending)"])
        #expect(try world.world.versions() == [ending == .done ? "2.0.0" : "1.0.0"])
    }

    @Test func `an update fails if a step changes a database that is not in its plan`() throws {
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", database: "food"),
            prepare: """
                staged=$(printf '%s' "$message" | sed 's/.*"databases":{"food":"\\([^"]*\\)".*/\\1/')
                echo more >> "$(dirname "$staged")/codes.db"; echo '{"reply":"result"}'
                """)
        let world = try StepWorld(program)
        let before = try world.world.visible()
        let error = try #require(try world.failure())
        #expect(error.outcome == .failed)
        #expect(error.why?.hasPrefix("it exceeded its plan: /") == true)
        #expect(error.why?.hasSuffix("/generation/codes.db was changed") == true)
        #expect(try world.world.visible() == before)
    }
}

extension StepWorld {
    /// Replaces `GRANTED` and `STORE` in a program with paths of this store, and trusts the program.
    func adapt(_ program: String) throws {
        let text = String(decoding: try Files.read(program, limit: 1 << 20) ?? [], as: UTF8.self)
        let placed = text.split(separator: "GRANTED", omittingEmptySubsequences: false).joined(separator: granted)
            .split(separator: "STORE", omittingEmptySubsequences: false).joined(separator: store)
        _ = try Programs.write(placed, program)
        try settings { $0.setting("sha256", to: .string(try StepExecutable(program).sha256)) }
    }
}
