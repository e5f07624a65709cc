import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@Suite struct ApplyVerbTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    private func lines(_ text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The output repeats each line of the plan with a tick, followed by the result.
    @Test func `apply prints the plan with a tick for each line`() throws {
        try world.install(world.first)
        let planned = lines(try world.run("moult plan rel/test-2.0.0.json").out)
        let run = try world.run("moult apply rel/test-2.0.0.json")
        #expect(run.status == 0)
        #expect(run.err == "")
        let applied = lines(run.out)
        let effects = planned[2..<(planned.count - 4)]
        #expect(effects.count == 6)
        #expect(applied[..<(applied.count - 2)] == planned[..<2] + effects.map { "ok \($0)" } + [""])
        let end = applied[applied.count - 2]
        #expect(end.hasPrefix("2.0.0 is installed (generation \(try world.generation(world.second))) in "))
        #expect(end.hasSuffix(" ms") || end.hasSuffix(" s"))
        #expect(try world.must("LANG=C.UTF-8 moult rollback").contains("\n✓ - delete   food "))
    }

    @Test func `apply of the installed release prints one line and changes nothing`() throws {
        try world.install(world.first)
        let tree = try world.tree
        #expect(try world.run("moult apply rel/test-1.0.0.json") == (0, "nothing to do: 1.0.0 is installed\n", ""))
        #expect(try world.run("moult apply -q rel/test-1.0.0.json") == (0, "", ""))
        let events = try world.json("moult apply --json rel/test-1.0.0.json")
        #expect(events.count == 1)
        #expect(events[0]["event"]?.string == "result")
        #expect(events[0]["changed"]?.bool == false)
        #expect(events[0]["version"]?.string == "1.0.0")
        #expect(try world.tree == tree)
    }

    @Test func `with -q, apply prints nothing on success`() throws {
        try world.install()
        #expect(try world.run("moult apply -q rel/test-1.0.0.json") == (0, "", ""))
        #expect(try world.run("moult apply -q rel/none.json").err != "")
    }

    @Test func `apply --json prints events as lines of JSON`() throws {
        try world.install(world.first)
        let plan = try JSON(parsing: world.run("moult plan --json rel/test-2.0.0.json").out, source: "plan")
        let run = try world.run("moult apply --json rel/test-2.0.0.json")
        #expect(run.status == 0)
        #expect(run.err == "")
        let events = try run.out.split(separator: "\n").map { try JSON(parsing: String($0), source: "event") }
        for event in events { #expect(event["format"]?.integer == 1) }
        let names = events.compactMap { $0["event"]?.string }
        #expect(names.first == "plan")
        #expect(names.last == "result")
        #expect(names.count { $0 == "decided" } == 1)
        #expect(events[0]["plan"]?["effects"] == plan["effects"])
        let done = events.filter { $0["event"]?.string == "done" }
        #expect(done.compactMap { $0["effect"] } == plan["effects"]?.array)
        #expect(done.allSatisfy { $0["pass"]?.string == "apply" })
        let result = try #require(events.last)
        #expect(result["generation"]?.string == (try world.generation(world.second)))
        #expect(result["from"]?["version"]?.string == "1.0.0")
        #expect(result["changed"]?.bool == true)
    }

    @Test func `with --json, an error is printed as an event`() throws {
        try world.install(world.second)
        let run = try world.run("moult apply --json rel/test-1.0.0.json")
        #expect(run.status == 3)
        #expect(run.err == "")
        let error = try JSON(parsing: run.out, source: "stdout")["error"]
        #expect(error?["outcome"]?.string == "refused")
        #expect(error?["exit"]?.integer == 3)
    }

    @Test func `a saved plan is applied once`() throws {
        try world.install()
        try world.must("moult plan -o p rel/test-1.0.0.json", status: 2)
        // The plan contains the path of its store, so it can be applied from any directory.
        #expect(try world.must("cd / && moult apply --plan $OLDPWD/p").contains("1.0.0 is installed ("))
        let id = try #require(JSON(parsing: world.scratch.text("p"), source: "p")["plan"]?.string)
        #expect(
            try world.run("moult apply --plan p") == (
                4, "",
                """
                moult: error: the plan \(id) is out of date: it was already applied
                  Create a new plan with: moult plan --output FILE RELEASE

                """
            ))
    }

    @Test(arguments: [
        ("touch -d 2020-01-01 rel/test-2.0.0.tar.zst", "rel/test-2.0.0.tar.zst: modified"),
        ("echo >> rel/test-2.0.0.json", "rel/test-2.0.0.json: content"),
        ("moult hold 9.0.0 --reason x", "store/.moult/holds.json: content"),
        ("moult rollback", "store/.moult/current: target"),
        ("rm -f store/user.db", "store/user.db: kind"),
    ])
    func `the error for an outdated saved plan names the change`(_ change: String, named: String) throws {
        let three = try world.maker.make("3.0.0", sequence: 3, VerbWorld.databases(["rye"]))
        try world.install(world.first, world.second)
        try world.must("moult rollback -q; moult unhold -q; moult apply -q rel/test-2.0.0.json")
        #expect(try world.run("moult plan -o p \(three)").status == 2)
        let change = change.replacing("2.0.0.", with: "3.0.0.")
        try world.must(change)
        let tree = try world.tree
        let run = try world.run("moult apply --plan p")
        #expect(run.status == 4)
        let path = world.scratch.path(named.replacing("2.0.0.", with: "3.0.0."))
        #expect(run.err.contains(" is out of date: \(path) was "), "\(run.err)")
        #expect(try world.tree == tree)
    }

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

    @Test func `warnings go to stderr`() throws {
        _ = try world.maker.make(
            "3.0.0", sequence: 3, VerbWorld.databases(["rye"]), top: [.init("expires", "2020-01-01T00:00:00Z")])
        try world.install()
        let warning = "moult: warning: release 3.0.0 expired on 2020-01-01T00:00:00Z\n"
        #expect(try world.run("moult plan rel/test-3.0.0.json").err == warning)
        #expect(try world.run("moult apply -q rel/test-3.0.0.json") == (0, "", warning))
    }
}
