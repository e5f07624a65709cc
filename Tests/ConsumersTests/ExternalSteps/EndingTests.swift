import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// Tests when steps get messages, and when they do not.
@Suite struct EndingTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    /// The command is killed while the step prepares; the next command notifies the step of the outcome.
    @Test func `a step is notified of the outcome after a crash before the decision`() throws {
        let program = try Programs.shell(
            scratch, prepare: "exec sleep 60",
            clean: """
                ending=$(printf '%s' "$message" | sed 's/.*"ending":"\\([a-z]*\\)".*/\\1/')
                echo '{"reply":"error","message":"the ending is '"$ending"'"}'
                """)
        let world = try StepWorld(program)
        let before = try world.world.visible()
        try killWhilePreparing(world)
        let settled = try BuiltMoult.run("recover", "--store", world.store)
        #expect(settled.status == 0)
        #expect(
            settled.errors.contains("warning: the step test.step failed during clean: the ending is failed"),
            "\(settled.errors)")
        #expect(try world.world.visible() == before)
        #expect(try Files.list("\(world.store)/.moult/transactions") == [])
    }

    /// Kills an update while its step prepares.
    private func killWhilePreparing(_ world: StepWorld) throws {
        let ended = try Shell.run([
            "bash", "-c",
            """
            '\(try BuiltMoult.path())' apply -q --store '\(world.store)' '\(world.world.second)' & pid=$!
            until [ -d '\(world.store)'/.moult/transactions/*/steps/test.step ]; do sleep 0.02; done
            kill -KILL $pid; wait $pid
            """,
        ])
        #expect(ended.status == 137)
    }

    @Test func `recovery only warns if the program of a step was removed`() throws {
        let program = try Programs.shell(scratch, prepare: "exec sleep 60")
        let world = try StepWorld(program)
        try killWhilePreparing(world)
        try Files.remove(program)
        let settled = try BuiltMoult.run("recover", "--store", world.store)
        #expect(settled.status == 0, "\(settled.errors)")
        #expect(settled.errors.contains("\(program) cannot be used as a step"))
        #expect(try Files.list("\(world.store)/.moult/transactions") == [])
    }

    @Test func `a step gets no message if the release is already installed`() throws {
        let world = try StepWorld(try Programs.shell(scratch))
        #expect(try world.plan().changesStore)
        try world.update()
        let plan = try world.plan()
        #expect(!plan.changesStore)
        #expect(
            plan.effects.last { $0.step == "test.step" }?.change == .keep(why: "done when the release was installed"))
        let shown = try Shell.run([try BuiltMoult.path(), "plan", world.world.second, "--store", world.store])
        #expect(shown.output == "nothing to do: 2.0.0 is installed\n")
        #expect(shown.status == 0)
        // A damaged generation is installed again, and the step gets messages for this.
        let file = "\(world.store)/.moult/current/food.db"
        try Shell.must([
            "sh", "-ec", "chmod u+w \(file); printf x | dd of=\(file) bs=1 seek=5000 conv=notrunc status=none",
        ])
        #expect(try world.plan().effects.contains { $0.step == "test.step" && $0.isCustom })
    }

    @Test func `a reset sends no messages to steps`() throws {
        let program = try Programs.shell(scratch)
        let world = try StepWorld(program)
        try world.update()
        // From here on, the step fails on every message.
        let silent = try Programs.write("#!/bin/sh\nexit 9\n", program)
        try world.adapt(silent)
        try Shell.must(["sh", "-ec", "echo broken > \(world.store)/user.db"])
        let ended = try Shell.run([
            try BuiltMoult.path(), "reset", "user", "--set-user-data-aside", "--reason", "a test", "--store",
            world.store,
        ])
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try Shell.must(["sqlite3", "\(world.store)/user.db", "SELECT count(*) FROM note"]) == "0\n")
    }
}
