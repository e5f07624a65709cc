import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Consumers that release their databases, and consumers that do not.
@Suite struct ConsumerReleaseTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
    }

    /// A program that keeps the pantry open, closes it on SIGUSR1, and opens it again on SIGHUP.
    private static let server = """
        import signal, sqlite3, sys
        def open_(*_):
            global c; c = sqlite3.connect(sys.argv[1]); print(c.execute("SELECT release FROM pantry").fetchone()[0])
        def close(*_): c.close(); print("closed")
        signal.signal(signal.SIGUSR1, close); signal.signal(signal.SIGHUP, open_)
        open_()
        while True: signal.pause()
        """

    private static let stubborn = """
        import sqlite3, sys
        c = sqlite3.connect(sys.argv[1]); c.execute("SELECT * FROM pantry").fetchall()
        print("ready"); sys.stdin.read()
        """

    /// Returns the files of the store, except those that every attempt changes: the history, the transactions and the lock.
    private func tree() throws -> [String] {
        try Tree(shop.root, skipping: [".moult/history.jsonl", ".moult/transactions", ".moult/lock"]).lines.filter {
            // An attempt changes only the times of this directory, not its content.
            !$0.hasPrefix(".moult directory")
        }
    }

    private func pidFile(_ program: Program) throws -> String {
        let file = shop.scratch.path("pid")
        try Files.writeNew(Array("\(program.pid)\n".utf8), to: file)
        return file
    }

    @Test func `a program closes its database on a signal and reopens it`() throws {
        let server = try Program.python(Self.server, shop.pantry)
        #expect(server.line() == "1")
        try shop.set(consumers: ["name": "server", "signal": ["pidFile": .string(pidFile(server)), "release": "USR1"]])
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(server.line() == "closed")
        #expect(server.line() == "2")
    }

    /// A program in a container writes the number that it has there. Here, no process or another one has this number.
    @Test(arguments: [true, false])
    func `a program in another PID namespace counts as not released, and no process gets a signal`(isTaken: Bool) throws
    {
        let server = try Program.python(Self.stubborn, shop.pantry)
        #expect(server.line() == "ready")
        // The program that has the number by chance ends if it gets a signal.
        let other = try Program(["sleep", "600"])
        let file = shop.scratch.path("pid")
        try Files.writeNew(Array("\(isTaken ? other.pid : Int32.max - 1)\n".utf8), to: file)
        try shop.set(consumers: ["name": "server", "signal": ["pidFile": .string(file), "release": "TERM"]])
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 75, "\(ended)")
        #expect(ended.errors.contains("may run in another PID namespace: no signal is sent"), "\(ended.errors)")
        #expect(other.isRunning)
        server.closeInput()
        server.wait()
        #expect(try shop.apply(shop.release(2)).status == 0)
    }

    @Test func `the error names a program that ignores the signal`() throws {
        let server = try Program.python(Self.server, shop.pantry)
        #expect(server.line() == "1")
        try shop.set(
            consumers: [
                "name": "server", "timeout": 1, "signal": ["pidFile": .string(pidFile(server)), "release": "WINCH"],
            ])
        let before = try tree()
        let start = ContinuousClock.now
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 75)
        #expect(ContinuousClock.now - start < .seconds(5))
        #expect(ended.errors.contains("the consumer server does not release pantry"))
        #expect(ended.errors.contains("pid \(server.pid) ("))
        #expect(try tree() == before)
        #expect(try Transactions.none(shop.layout))
    }

    /// The release command reports success, but the file is still open: only the kernel's answer counts.
    @Test func `the error names a process that keeps a file open although the release command succeeds`() throws {
        let holder = try holdingCache()
        let before = try tree()
        let ended = try shop.apply(shop.release(3, cache: true))
        #expect(ended.status == 75)
        #expect(ended.errors.contains("\(shop.thumbs) is in use"))
        #expect(ended.errors.contains("pid \(holder.pid) ("))
        #expect(try tree() == before)
        let said = try shop.said
        #expect(said.count == 2 && said[0].hasPrefix("api release ") && said[1].hasSuffix(" 2.0.0 undone"), "\(said)")
    }

    @Test(arguments: [
        ("exit 3", "exited with status 3"), ("kill -KILL $$", "was killed by signal 9"),
        ("sleep 60", "did not exit in time"),
    ])
    func `an update fails if a release command fails`(_ script: String, _ why: String) throws {
        try shop.set(
            consumers: shop.consumer("first"), shop.consumer("bad", release: script, ["timeout": 1]),
            shop.consumer("last"))
        let before = try tree()
        let start = ContinuousClock.now
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 75)
        #expect(ContinuousClock.now - start < .seconds(6))
        #expect(ended.errors.contains("the consumer bad does not release pantry"))
        #expect(ended.errors.contains(why), "\(ended.errors)")
        #expect(try tree() == before)
        // Only consumers that were asked to release are asked to reload.
        #expect(
            try shop.said == [
                "last release pantry 1.0.0 ", "bad release pantry 1.0.0 ",
                "bad reload food pantry 1.0.0 undone", "last reload food pantry 1.0.0 undone",
            ])
    }

    @Test func `a release command that times out is ended together with its child processes`() throws {
        let file = shop.scratch.path("child")
        try shop.set(consumers: shop.consumer("api", release: "sleep 60 & echo $! > \(file); wait", ["timeout": 1]))
        #expect(try shop.apply(shop.release(2)).status == 75)
        let text = String(decoding: try Files.read(file, limit: 64) ?? [], as: UTF8.self).filter(\.isNumber)
        let child = try #require(Int32(text))
        // A zombie has no command line, only the short name `sleep`.
        #expect(ProcessFacts(pid: child).command != "sleep 60")
    }

    /// moult neither waits for nor kills a service that a command starts in the background.
    @Test func `background processes of a command keep running`() throws {
        let file = shop.scratch.path("child")
        try shop.set(consumers: shop.consumer("api", reload: "sleep 60 & echo $! > \(file)"))
        let start = ContinuousClock.now
        #expect(try shop.apply(shop.release(2)).status == 0)
        #expect(ContinuousClock.now - start < .seconds(8))
        let text = String(decoding: try Files.read(file, limit: 64) ?? [], as: UTF8.self).filter(\.isNumber)
        let child = try #require(Int32(text))
        #expect(ProcessFacts(pid: child).command == "sleep 60")
        kill(child, SIGKILL)
    }

    @Test func `--force-after ends processes that still have the file open`() throws {
        let holder = try holdingCache(release: "exit 1")
        let ended = try shop.apply(shop.release(3, cache: true), "--force-after", "1")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.errors.contains("the consumer api does not release"))
        #expect(ended.errors.contains("pid \(holder.pid) ("))
        #expect(holder.wait() == 128 + SIGTERM)
        #expect(try shop.value(shop.thumbs, "SELECT name FROM pragma_table_info('thumb')") == "x3")
    }

    /// If a database stays locked for longer than the update waits, the release is not to blame, so the status is 75.
    @Test func `an update waits for a process that holds a lock, and then exits with 75`() throws {
        let writer = try Program.python(
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute("BEGIN EXCLUSIVE")
            print("ready"); sys.stdin.read()
            """, shop.pantry)
        #expect(writer.line() == "ready")
        let before = try tree()
        let ended = try shop.apply(shop.release(2))
        #expect(ended.status == 75, "\(ended.errors)")
        #expect(try tree() == before)
    }

    @Test func `--force-after sends KILL to a process that ignores TERM`() throws {
        let holder = try holdingCache("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
        let ended = try shop.apply(shop.release(3, cache: true), "--force-after", "0")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.errors.contains("moult sends SIGTERM to this process"))
        #expect(ended.errors.contains("moult sends SIGKILL to this process"))
        #expect(holder.wait() == 128 + SIGKILL)
        #expect(try shop.value(shop.thumbs, "SELECT name FROM pragma_table_info('thumb')") == "x3")
    }

    /// Starts a program that keeps a damaged cache open, which its consumer does not release. The next release sets the file aside.
    private func holdingCache(_ before: String = "", release: String = "true") throws -> Program {
        try shop.store.updateBlocking(to: shop.release(2, cache: true))
        try Files.replace(shop.thumbs, with: Array("this is not a database".utf8))
        let script = "import sys; f = open(sys.argv[1], 'rb'); print('ready'); sys.stdin.read()"
        let holder = try Program.python("\(before)\n\(script)", shop.thumbs)
        #expect(holder.line() == "ready")
        try shop.set(consumers: shop.consumer("api", release: release, ["timeout": 1]))
        return holder
    }

    @Test func `--force-after does not kill processes that do not block the update`() throws {
        let reader = try Program.python(Self.stubborn.replacing("pantry", with: "food"), "\(shop.root)/food.db")
        #expect(reader.line() == "ready")
        #expect(try shop.apply(shop.release(2), "--force-after", "0").status == 0)
        reader.closeInput()
        #expect(reader.wait() == 0)
    }

    /// The update is killed while a consumer releases its databases: the next command asks the consumers to reload.
    @Test func `after a crash, consumers that were asked to release are asked to reload`() throws {
        let ready = shop.scratch.path("ready")
        try shop.set(consumers: shop.consumer("slow", release: "touch \(ready); sleep 60"), shop.consumer("quick"))
        let update = try Program([BuiltMoult.path(), "apply", "--store", shop.root, shop.release(2)])
        while try Files.facts(ready) == nil { usleep(1000) }
        update.signal(SIGKILL)
        update.wait()
        let recovered = try BuiltMoult.run("recover", "--store", shop.root)
        #expect(recovered.status == 0, "\(recovered.errors)")
        #expect(
            try shop.said.filter { $0.contains("reload") } == [
                "slow reload food pantry 1.0.0 undone", "quick reload food pantry 1.0.0 undone",
            ])
    }
}

/// The command is killed after consumers have released their databases, before and after the decision: the next command
/// notifies the consumers of the outcome.
@Suite struct KilledWhileReleasedTests {
    @Test func `the command after a crash tells released consumers the outcome`() throws {
        var outcomes: Set<String> = []
        for number in 1...8 {
            let shop = try ConsumerShop()
            try shop.store.updateBlocking(to: shop.release(1))
            try shop.set(consumers: shop.consumer("api"))
            let ended = try Shell.run([
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e",
                "inject=renameat2:signal=SIGKILL:when=\(number)", BuiltMoult.path(), "apply", "--store", shop.root,
                shop.release(2),
            ])
            if ended.status == 0 { break }
            let note = Comment("killed at rename \(number)")
            let before = try shop.said
            let recovered = try BuiltMoult.run("recover", "--store", shop.root)
            #expect(recovered.status == 0, "\(recovered.errors)")
            let isNew = try shop.value(shop.pantry, "SELECT release FROM pantry") == "2"
            #expect(try shop.value("\(shop.root)/food.db", "SELECT release FROM food") == (isNew ? "2" : "1"), note)
            let now = try shop.said.dropFirst(before.count)
            let reload = isNew ? "api reload food pantry 2.0.0 installed" : "api reload food pantry 1.0.0 undone"
            // The kernel dropped the lock of the killed process, so recovery may ask the consumers to release again.
            if before.isEmpty {
                #expect(now.isEmpty, note)
            } else {
                #expect(now.last == reload, note)
                #expect(now.filter { $0.contains("reload") } == [reload], note)
                outcomes.insert(reload)
            }
            #expect(try Transactions.none(shop.layout), note)
        }
        #expect(outcomes.contains("api reload food pantry 2.0.0 installed"))
    }
}

/// The unfinished updates of a store.
enum Transactions {
    static func none(_ layout: StoreLayout) throws -> Bool { try Unfinished(in: layout).isEmpty }
}
