import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// A store with a step, used by the built command as root or as another user.
struct CommandWorld {
    let scratch: Scratch
    let world: StepWorld
    let user: UInt32

    /// Root and an ordinary user; only the current user if the tests do not run as root.
    static var users: [UInt32] { geteuid() == 0 ? [0, 65534] : [geteuid()] }

    /// Creates a store with a step that runs this program. In the program, `GRANTED` is replaced by the directory that the step
    /// may write to, and `STORE` by the store.
    init(_ text: String, as user: UInt32, with: JSON = .object([])) throws {
        scratch = try Scratch()
        self.user = user
        let program = try Programs.write(text, scratch.path("step"))
        world = try StepWorld(program, with: with, timeout: 60)
        try world.adapt(program)
        guard user != geteuid() else { return }
        // The program belongs to root, like an installed program; the store and the granted directory belong to the
        // other user.
        let home = world.world.scratch.path
        try Shell.must(["chmod", "755", scratch.path, home, world.world.releases.scratch.path])
        try Shell.must(["chown", "-R", "\(user):\(user)", home])
        try Shell.must(["install", "-m", "755", BuiltMoult.path(), scratch.path("moult")])
    }

    var prefix: [String] {
        user == geteuid() ? [] : ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
    }

    /// Returns the words that run the command on this store.
    func command(_ words: String...) throws -> [String] {
        try prefix + [user == geteuid() ? BuiltMoult.path() : scratch.path("moult")] + words
            + ["--store", world.store]
    }

    /// Runs `moult plan` and returns the texts of the step's effects.
    func planned(by kernel: [String] = []) throws -> [String] {
        let ended = try Shell.run(
            kernel + command("plan", world.world.second, "--json"),
            environment: ["HOME": world.world.scratch.path, "TMPDIR": "/tmp"])
        guard ended.status == 2 else {
            throw MoultError(.system, what: "plan ended with \(ended.status)", why: ended.errors)
        }
        let plan = try JSON(parsing: Array(ended.output.utf8), source: "plan")
        return (plan["effects"]?.array ?? []).filter { $0["step"]?.string == world.name }
            .compactMap { $0["text"]?.string ?? $0["change"]?["text"]?.string }
    }
}
