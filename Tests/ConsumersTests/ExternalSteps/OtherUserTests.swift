import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// Steps that a user other than root runs, without a mount namespace, but with all other protection.
@Suite(.enabled(if: geteuid() == 0, "without root, the other tests already run as an ordinary user"))
struct OtherUserTests {
    @Test func `an ordinary user can trust, plan and apply a step`() throws {
        let scratch = try Scratch()
        let program = try Programs.shell(
            scratch, name: "step",
            plan: "touch STORE/new GRANTED/new 2> /dev/null && exit 4;"
                + Programs.planned("x", writes: ["GRANTED/file"]),
            apply: "id -u > GRANTED/file; touch STORE/new 2> /dev/null && exit 4; echo '{\"reply\":\"result\"}'")
        let world = try StepWorld(program, trusted: false)
        let home = world.world.scratch.path
        // The program belongs to root, like an installed program; the store and the granted directory belong to the
        // other user.
        try Shell.must(["chmod", "755", scratch.path, home, world.world.releases.scratch.path])
        try Shell.must(["install", "-m", "755", BuiltMoult.path(), scratch.path("moult")])
        let text = String(decoding: try Files.read(program, limit: 1 << 20) ?? [], as: UTF8.self)
            .replacing("GRANTED", with: world.granted).replacing("STORE", with: world.store)
        _ = try Programs.write(text, program)
        try Shell.must(["chown", "-R", "65534:65534", home])
        func run(_ words: String...) throws -> Shell.Ended {
            try Shell.run(
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", scratch.path("moult")] + words
                    + ["--store", world.store], environment: ["HOME": home, "TMPDIR": "/tmp"])
        }
        let untrusted = try run("plan", world.world.second)
        #expect(untrusted.status == 3)
        #expect(untrusted.errors.contains("its program \(program) is not trusted"))
        let trusted = try run("steps", "trust", "test.step")
        #expect(trusted.status == 0, "\(trusted.errors)")
        let plan = try run("plan", world.world.second, "--json")
        #expect(plan.status == 2, "\(plan.errors)")
        let step = try JSON(parsing: plan.output, source: "plan")["steps"]?.array?.first
        let level = step?["enforced"]?.string ?? ""
        #expect(level.hasPrefix("planned without write access, enforced by Landlock "))
        #expect(level.hasSuffix(" and seccomp"))
        let applied = try run("apply", "-q", world.world.second)
        #expect(applied.status == 0, "\(applied.errors)")
        #expect(try Files.read("\(world.granted)/file", limit: 100) == Array("65534\n".utf8))
        #expect(try Files.facts("\(world.store)/new") == nil)
        #expect(try world.world.versions() == ["2.0.0"])
    }

    /// moult does not run a program that a user other than root and the current user can change.
    @Test func `a step program that belongs to a third user is refused`() throws {
        let scratch = try Scratch()
        let program = try Programs.shell(scratch)
        let world = try StepWorld(program)
        try Shell.must(["chown", "65533", program])
        #expect(try world.failure()?.why == "its owner is user 65533, but must be root or this user")
    }
}
