import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Updates whose consumers do not reload, and readers that acknowledge a release with a lease.
@Suite struct ReloadingTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
    }

    /// Reloads every release except the second.
    private static let picky = "[ $MOULT_VERSION != 2.0.0 ] || { echo it is bad >&2; exit 4; }"

    @Test func `a consumer that fails to reload is reported`() throws {
        try shop.set(consumers: shop.consumer("api", reload: Self.picky))
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 0)
        #expect(ended.errors.contains("the consumer api did not reload: sh -c "))
        #expect(ended.errors.contains("exited with status 4: it is bad"))
        #expect(try shop.store.lease().version == "2.0.0")
    }

    @Test func `the history has the time of the reload`() throws {
        try shop.set(consumers: shop.consumer("api", reload: "sleep 0.3"))
        #expect(try shop.apply(shop.release(2)).status == 0)
        let entry = try #require(try History.read(shop.layout).entries.last)
        #expect(entry.outcome == .done && entry.milliseconds ?? 0 >= 300)
        #expect(entry.parts.first { $0.name == "reload" }?.microseconds ?? 0 >= 300_000)
    }

    @Test func `after a kill during the reload, recovery calls the consumers again and records the update once`() throws
    {
        let (ready, go) = (shop.scratch.path("ready"), shop.scratch.path("go"))
        try shop.set(
            consumers: shop.consumer("api", reload: "touch \(ready); until [ -e \(go) ]; do sleep 0.05; done"))
        let update = try Program([BuiltMoult.path(), "apply", "--store", shop.root, shop.release(2)])
        while try Files.facts(ready) == nil { usleep(1000) }
        update.signal(SIGKILL)
        update.wait()
        try Files.writeNew([], to: go)
        let before = try shop.said.count { $0.hasPrefix("api reload") }
        #expect(try BuiltMoult.run("recover", "--store", shop.root).status == 0)
        #expect(try shop.said.count { $0.hasPrefix("api reload") } == before + 1)
        #expect(try History.read(shop.layout).entries.map(\.outcome) == [.done, .finished])
        #expect(try shop.store.lease().version == "2.0.0")
    }

    @Test func `a release is rolled back if a consumer with roll-back fails to reload it`() throws {
        try shop.set(
            consumers: shop.consumer("api", reload: Self.picky, ["onReloadFailure": "roll-back"]), shop.consumer("web"))
        try Shell.must(["sqlite3", shop.pantry, "INSERT INTO pantry VALUES('mine')"])
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 5)
        #expect(ended.errors.contains("the update to 2.0.0 was rolled back: the consumer api did not reload"))
        #expect(try shop.store.lease().version == "1.0.0")
        #expect(try shop.value(shop.pantry, "SELECT release FROM pantry") == "1")
        #expect(
            try shop.said.filter { $0.contains("reload") } == [
                "api reload food pantry 2.0.0 installed", "web reload food pantry 2.0.0 installed",
                "api reload food pantry 1.0.0 installed", "web reload food pantry 1.0.0 installed",
            ])
        // The release is on hold, so that a timer does not install it again.
        let again = try shop.apply(shop.release(2))
        #expect(again.status == 3)
        #expect(again.errors.contains("release 2.0.0 is on hold"))
        #expect(try History.read(shop.layout).entries.map(\.action) == ["update", "update", "rollback"])
    }

    /// With the release, the app cannot run, so the request to stop comes too late.
    @Test(arguments: [SIGTERM, SIGINT])
    func `a signal during the reload does not prevent the rollback`(number: Int32) throws {
        let (ready, go) = (shop.scratch.path("ready"), shop.scratch.path("go"))
        let waits =
            "[ $MOULT_VERSION != 2.0.0 ] || { touch \(ready); until [ -e \(go) ]; do sleep 0.05; done; exit 4; }"
        try shop.set(consumers: shop.consumer("api", reload: waits, ["onReloadFailure": "roll-back"]))
        let update = try Program([BuiltMoult.path(), "apply", "--store", shop.root, shop.release(2)])
        while try Files.facts(ready) == nil { usleep(1000) }
        update.signal(number)
        try Files.writeNew([], to: go)
        #expect(update.wait() == 5)
        #expect(try shop.store.lease().version == "1.0.0")
        #expect(try shop.apply(shop.release(2)).errors.contains("release 2.0.0 is on hold"))
    }

    @Test func `a rollback that is refused after a failed reload is recorded`() throws {
        // The reload command damages the manifest of the earlier release, so the rollback is refused.
        let broken = "f=$(echo $MOULT_STORE/.moult/generations/1*/manifest.json); chmod u+w $f; echo '{' > $f; exit 4"
        try shop.set(consumers: shop.consumer("api", reload: broken, ["onReloadFailure": "roll-back"]))
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 6, "\(ended)")
        #expect(
            ended.errors.contains("2.0.0 is installed, the consumer api did not reload, and the rollback failed: "))
        #expect(try History.read(shop.layout).entries.last?.outcome == .stuck)
    }

    @Test func `if a reload fails after the first install, the release stays and the command exits with 6`() throws {
        let fresh = try ConsumerShop()
        try Orchestrator.create(at: fresh.root, Settings(product: "org.example.test"))
        try fresh.set(consumers: fresh.consumer("api", reload: "exit 1", ["onReloadFailure": "roll-back"]))
        let ended = try fresh.apply(fresh.release(1))
        #expect(ended.status == 6)
        #expect(ended.errors.contains("1.0.0 is installed, but the consumer api did not reload"))
        #expect(try fresh.store.lease().version == "1.0.0")
    }

    @Test func `consumers are also notified if an update is undone`() throws {
        try shop.set(consumers: shop.consumer("api"))
        let steps = StepSet.builtIn.adding([FailingStep(pass: .apply, phase: .verify)])
        let orchestrator = try Orchestrator(root: shop.root, steps: steps)
        let manifest = try JSON(parsing: Files.read(shop.release(2), limit: 1 << 20) ?? [], source: "manifest")
        let path = shop.scratch.path("releases/failing.json")
        let use: JSON = [["step": "test.failing", "after": "verify"]]
        try Files.writeNew(Array(manifest.setting("steps", to: use).pretty.utf8), to: path)
        let error = #expect(throws: MoultError.self) { _ = try orchestrator.update(ReleaseFile(path)) }
        #expect(error?.outcome == .undone)
        #expect(
            try shop.said == ["api release pantry 1.0.0 ", "api reload food pantry 1.0.0 undone"])
    }

    private static let leaser = """
        import fcntl, os, sys
        def take(): f = os.open(sys.argv[1] + "/.moult/current", os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_SH); return f
        held = take(); print("ready")
        while sys.stdin.readline(): os.close(held); held = take(); print("moved")
        """

    @Test func `an update waits until readers switch to the new generation`() throws {
        let reader = try Program.python(Self.leaser, shop.root)
        #expect(reader.line() == "ready")
        // The reader switches only after 2.0.0 has become current, so the update has to wait.
        let update = try Program([
            BuiltMoult.path(), "apply", "--json", "--store", shop.root, shop.release(2), "--wait-for-readers", "60",
        ])
        while try shop.store.lease().version != "2.0.0" { usleep(1000) }
        reader.write("move\n")
        #expect(reader.line() == "moved")
        var lines: [String] = []
        while let line = update.line() { lines.append(line) }
        #expect(update.wait() == 0)
        #expect(lines.last?.contains("\"laggards\":[]") == true)
    }

    /// Without `--wait-for-readers`, a reader of an older release does not count as late.
    @Test func `readers are not listed without --wait-for-readers`() throws {
        let reader = try Program.python(Self.leaser, shop.root)
        #expect(reader.line() == "ready")
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 0)
        #expect(ended.errors == "")
    }

    /// In a store of an older version, a lease is a lock on the directory, which is only visible in the kernel's table.
    @Test(arguments: [true, false])
    func `apply names a process with old files open only if it has no lease`(_ leases: Bool) throws {
        let reader = try Program.python(
            """
            import fcntl, os, sys
            directory = os.path.realpath(sys.argv[1] + "/.moult/current")
            held = os.open(directory, os.O_RDONLY)
            if sys.argv[2] == "true": fcntl.flock(held, fcntl.LOCK_SH)
            file = open(directory + "/food.db", "rb"); print("ready"); sys.stdin.readline()
            """, shop.root, "\(leases)")
        #expect(reader.line() == "ready")
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 0)
        #expect(ended.errors.contains("pid \(reader.pid) (") != leases, "\(ended)")
    }

    @Test func `a signal ends the wait for readers, and the update is complete`() throws {
        let reader = try Program.python(Self.leaser, shop.root)
        #expect(reader.line() == "ready")
        try shop.set("waitForReaders", "600")
        let update = try Program([BuiltMoult.path(), "apply", "--json", "--store", shop.root, shop.release(2)])
        while try shop.store.lease().version != "2.0.0" { usleep(1000) }
        update.signal(SIGTERM)
        var last = ""
        while let line = update.line() { last = line }
        #expect(update.wait() == 0)
        let result = try JSON(parsing: last, source: "result")
        #expect(result["version"]?.string == "2.0.0")
        #expect(result["laggards"]?.array?.count == 1, "\(last)")
    }

    @Test func `apply names a reader that does not switch to the new generation`() throws {
        let reader = try Program.python(Self.leaser, shop.root)
        #expect(reader.line() == "ready")
        let old = try shop.store.lease().generation
        try shop.set("waitForReaders", "1")
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 0)
        #expect(ended.errors.contains("pid \(reader.pid) ("))
        #expect(ended.errors.contains("still reads generation \(old)"))
    }
}
