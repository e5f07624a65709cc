import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// A kernel without Landlock: a filter makes system calls of the built command fail as on such a kernel.
@Suite(.tags(.thorough)) struct OlderKernelTests {
    let scratch: Scratch
    let kernel: String

    init() throws {
        scratch = try Scratch()
        kernel = try OlderKernel.withoutLandlock(in: scratch.path)
    }

    private func run(_ world: StepWorld, _ words: String...) throws -> Shell.Ended {
        try Shell.run([kernel, BuiltMoult.path()] + words + ["--store", world.store])
    }

    @Test func `steps are refused on a kernel that cannot confine them`() throws {
        let world = try StepWorld(try Programs.shell(scratch))
        let before = try world.world.visible()
        for verb in ["plan", "apply"] {
            let ended = try run(world, verb, world.world.second)
            #expect(ended.status == 3)
            #expect(
                ended.errors == """
                    moult: error: external steps cannot be run on this machine: this kernel has no Landlock, so moult cannot limit what such a step changes
                      Boot Linux 5.13 or later with Landlock and seccomp enabled, or use releases without external steps.

                    """)
        }
        #expect(try world.world.visible() == before)
    }

    @Test func `status reports the protection in force`() throws {
        let world = try StepWorld(try Programs.shell(scratch))
        try world.settings { $0.setting("after", to: nil) }
        let words = "seccomp only: this kernel has no Landlock"
        #expect(try run(world, "status").output.contains(words))
        let plan = try run(world, "plan", world.world.second)
        #expect(plan.output.contains("\nguard: \(words)\n"), "\(plan.output)\(plan.errors)")
        // Databases are still examined, with the available protection.
        let applied = try run(world, "apply", "-q", world.world.second)
        #expect(applied.status == 0, "\(applied.errors)")
        #expect(try world.world.versions() == ["2.0.0"])
        let looked = try run(world, "inspect", "\(world.store)/food.db")
        #expect(looked.status == 0, "\(looked.errors)")
    }

    @Test func `where only prctl(2) may set a filter, archives, checks and requests are confined as usual`() throws {
        let kernel = try OlderKernel.withoutSeccompCall(in: scratch.path)
        let world = try StepWorld(try Programs.shell(scratch))
        try world.settings { $0.setting("after", to: nil) }
        func run(_ words: String...) throws -> Shell.Ended {
            try Shell.run([kernel, BuiltMoult.path()] + words)
        }
        #expect(try run("status", "--store", world.store).output.contains(", seccomp"))
        let applied = try run("apply", "-q", world.world.second, "--store", world.store)
        #expect(applied.status == 0, "\(applied.errors)")
        #expect(try world.world.versions() == ["2.0.0"])
        let looked = try run("inspect", "\(world.store)/food.db")
        #expect(looked.status == 0, "\(looked.errors)")
        let asked = try run("plan", "http://127.0.0.1:1/food-1.0.0.json", "--store", world.store)
        #expect(asked.errors.contains("Failed to connect") && !asked.errors.contains("{"), "\(asked.errors)")
    }

    /// Debian 12's kernel has Landlock 2, which does not restrict truncation, ports or signals.
    @Test(arguments: CommandWorld.users)
    func `with Landlock 2, a step that plans cannot truncate a file or signal a process`(
        user: UInt32
    ) throws {
        let old = try OlderKernel.withOldLandlock(in: scratch.path)
        if user != geteuid() { try Shell.must(["chmod", "-R", "755", scratch.path]) }
        let world = try CommandWorld(Self.cutter, as: user)
        let database = "\(world.world.store)/user.db"
        try world.world.settings { $0.setting("with", to: ["database": .string(database)]) }
        let before = try #require(try Files.facts(database)?.size)
        let found = try world.planned(by: [old, "2"])
        #expect(found.count == 7)
        for line in found { #expect(["EPERM", "ENOSYS"].contains { line.hasSuffix(": \($0)") }, "\(line)") }
        #expect(try Files.facts(database)?.size == before)
    }

    @Test func `with Landlock 2, a store is updated as usual`() throws {
        let old = try OlderKernel.withOldLandlock(in: scratch.path)
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply: "sh -c 'sleep 60 & kill $!; wait'; echo fine > GRANTED/file; echo '{\"reply\":\"result\"}'")
        let world = try StepWorld(program)
        try world.adapt(program)
        let words = [old, "2", try BuiltMoult.path(), "apply", "-q", world.world.second, "--store", world.store]
        let applied = try Shell.run(words)
        #expect(applied.status == 0, "\(applied.errors)")
        #expect(try Files.read("\(world.granted)/file", limit: 10) == Array("fine\n".utf8))
        let status = try Shell.run([old, "2", BuiltMoult.path(), "status", "--store", world.store])
        #expect(status.output.contains("Landlock ABI 2, seccomp"), "\(status)")
    }

    /// The command, and the supervisor of a step, then ask in intervals whether their processes have ended.
    @Test func `without process descriptors, a store is updated as usual`() throws {
        let old = try OlderKernel.withoutProcessDescriptors(in: scratch.path)
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: ["GRANTED/file"]),
            apply: "sleep 60 & echo $! > GRANTED/file; echo '{\"reply\":\"result\"}'")
        let world = try StepWorld(program)
        try world.adapt(program)
        let applied = try Shell.run(
            [old, BuiltMoult.path(), "apply", "-q", world.world.second, "--store", world.store])
        #expect(applied.status == 0, "\(applied.errors)")
        #expect(try world.world.versions() == ["2.0.0"])
        // The supervisor noticed the end of the program, and ended the process that it left behind.
        let written = try #require(try Files.read("\(world.granted)/file", limit: 20))
        let left = try #require(Int32(String(decoding: written, as: UTF8.self).trimmed))
        #expect(kill(left, 0) == -1)
    }

    private static let cutter = Programs.attempting(
        """
        def attempts(given):
            file = given["database"]
            yield "truncate", lambda: os.truncate(file, 0)
            yield "open to cut", lambda: os.open(file, os.O_RDONLY | os.O_TRUNC)
            yield "openat2 to cut", lambda: call(437, -100, file.encode(), struct.pack("QQQ", os.O_TRUNC, 0, 0), 24)
            yield "kill", lambda: os.kill(parent, 0)
            yield "kill all", lambda: os.kill(-1, 0)
            yield "tkill", lambda: call(200, parent, 0)
            yield "tgkill", lambda: call(234, parent, parent, 0)
        """)
}
