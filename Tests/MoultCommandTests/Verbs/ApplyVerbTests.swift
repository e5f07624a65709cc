import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@Suite struct ApplyVerbTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    @Test func `the error of a second update names the process that is updating`() throws {
        try world.install()
        let lock = try #require(try FileLock.take(world.layout.lock, .exclusive))
        let run = try world.run("moult apply rel/test-1.0.0.json")
        #expect(run.status == 75)
        #expect(run.err.hasPrefix("moult: error: the store \(world.store) is in use: locked by pid \(getpid()) ("))
        #expect(run.err.hasSuffix("\n  Try again later, or wait for the other process: --wait SECONDS\n"))
        withExtendedLifetime(lock) {}
    }

    @Test func `a command with --wait waits for another update to finish`() throws {
        try world.install()
        // The command must succeed whether the lock is released before or after the wait begins.
        let run = try world.run(
            """
            exec 9< store/.moult/lock; flock 9
            moult apply --wait 600 rel/test-1.0.0.json 9<&- & flock -u 9; wait $!
            """)
        #expect(run.status == 0)
        #expect(run.out.contains("1.0.0 is installed ("))
    }

    /// Uses SIGTERM: background jobs of a shell ignore SIGINT, and moult does not handle a signal that is ignored.
    @Test func `a signal stops a command with --wait`() throws {
        try world.install()
        let lock = try #require(try FileLock.take(world.layout.lock, .exclusive))
        let tree = try world.tree
        // The command has started once it handles SIGTERM, which is bit 15 of the mask.
        let run = try world.run(
            """
            moult apply --wait 600 rel/test-1.0.0.json & pid=$!
            until mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$pid/status) && (( 0x$mask & 0x4000 )); do :; done
            kill -TERM $pid; wait $pid
            """)
        #expect(
            run == (
                1, "",
                "moult: error: interrupted before anything was changed\n  Nothing needs to be repaired. Run the command again at any time.\n"
            ))
        withExtendedLifetime(lock) {}
        #expect(try world.tree == tree)
    }
}
