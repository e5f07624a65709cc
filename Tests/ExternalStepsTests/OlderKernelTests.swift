import ExternalSteps
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// A kernel without Landlock: the command as it was built, under a filter that answers as such a kernel does.
@Suite struct OlderKernelTests {
    let scratch: Scratch
    let kernel: String

    init() throws {
        scratch = try Scratch()
        kernel = try OlderKernel.withoutLandlock(in: scratch.path)
    }

    private func run(_ world: StepWorld, _ words: String...) throws -> Shell.Ended {
        try Shell.run([kernel, BuiltMoult.path()] + words + ["--store", world.store])
    }

    @Test func `steps of others are refused`() throws {
        let world = try StepWorld(try Programs.shell(scratch))
        let before = try world.world.visible()
        for verb in ["plan", "apply"] {
            let ended = try run(world, verb, world.world.second)
            #expect(ended.status == 3)
            #expect(
                ended.errors == """
                    moult: error: steps of others cannot be run here: this kernel has no Landlock, which keeps them from changing what they must not
                      Boot a kernel from 5.13 on with both enabled, or use releases without such steps.

                    """)
        }
        #expect(try world.world.visible() == before)
    }

    @Test func `what is in force is said`() throws {
        let world = try StepWorld(try Programs.shell(scratch))
        try world.settings { $0.setting("after", to: nil) }
        let words = "seccomp only: this kernel has no Landlock"
        #expect(try run(world, "status").output.contains(words))
        let plan = try run(world, "plan", world.world.second)
        #expect(plan.output.contains("\nguard: \(words)\n"), "\(plan.output)\(plan.errors)")
        // Databases are examined all the same, by what there is.
        let applied = try run(world, "apply", "-q", world.world.second)
        #expect(applied.status == 0, "\(applied.errors)")
        #expect(try world.world.versions() == ["2.0.0"])
        let looked = try run(world, "inspect", "\(world.store)/food.db")
        #expect(looked.status == 0, "\(looked.errors)")
    }
}
