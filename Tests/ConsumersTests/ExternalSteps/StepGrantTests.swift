import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import Synchronization
import TestSupport
import Testing

/// What `"writable"` may include: nothing that determines which programs moult runs, or which databases are in service.
@Suite struct StepGrantTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func world(_ writable: (StepWorld) throws -> String) throws -> (StepWorld, MoultError?) {
        let world = try StepWorld(try Programs.shell(scratch))
        let path = try writable(world)
        try world.settings { $0.setting("writable", to: [.string(path)]) }
        do { _ = try Settings.read(StoreLayout(root: world.store)) } catch let error as MoultError {
            return (world, error)
        }
        return (world, nil)
    }

    static let refused = [
        "STORE", "STORE/", "STORE/moult.json", "STORE/.moult", "STORE/.moult/current", "STORE/.moult/transactions",
        "STORE/food.db",
        "STORE/.moult/missing/file", "SCRATCH", "/etc", "/etc/moult", "/etc/moult/trusted-stores", "STEPS",
        "STEPS/step",
        "SCRATCH/link-to-store", "SCRATCH/hard-link",
    ]

    @Test(arguments: refused) func `settings that let a step write to moult's own files are refused`(_ path: String)
        throws
    {
        let (world, error) = try world { world in
            let here = Files.directory(of: world.store)
            try Files.symlink(to: world.store, at: "\(here)/link-to-store")
            try Files.hardLink("\(world.store)/moult.json", at: "\(here)/hard-link")
            let text = path.replacing("STORE", with: world.store).replacing("SCRATCH", with: here)
                .replacing("STEPS", with: scratch.path)
            // The settings are replaced below, which would separate the names.
            if path.hasSuffix("hard-link") { try Files.remove("\(here)/hard-link") }
            return text
        }
        if path.hasSuffix("hard-link") {
            let link = "\(Files.directory(of: world.store))/hard-link"
            try Files.hardLink("\(world.store)/moult.json", at: link)
        }
        let found: MoultError?
        do {
            _ = try Settings.read(StoreLayout(root: world.store))
            found = nil
        } catch let error as MoultError { found = error }
        let refusal = try #require(found ?? error)
        #expect(refusal.outcome == .refused)
        #expect(refusal.what.hasPrefix("the step test.step may not write to /"), "\(refusal)")
        #expect(refusal.now?.description.contains("let \"writable\" of this step name a directory of its own") == true)
    }

    @Test(arguments: ["STORE/hook.log", "STORE/hooks", "SCRATCH/granted", "/var/spool/hooks"])
    func `a file in the store, or a directory of its own, may be granted`(_ path: String) throws {
        let (_, error) = try world { world in
            path.replacing("STORE", with: world.store).replacing("SCRATCH", with: Files.directory(of: world.store))
        }
        #expect(error == nil)
    }

    @Test func `a path with two dots is refused`() throws {
        let (world, error) = try world { "\($0.store)/../granted" }
        #expect(
            error?.what.contains("must contain only absolute paths without \"..\", not \"\(world.store)/../granted\"")
                == true)
    }

    @Test func `a grant that contains a consumer's program or PID file is refused`() throws {
        for consumer: JSON in [
            ["name": "a", "command": ["reload": ["sh", .string("/srv/hooks/reload")]]],
            ["name": "a", "signal": ["pidFile": .string("/srv/hooks/app.pid")]],
        ] {
            let world = try StepWorld(try Programs.shell(scratch))
            try Settings.rewrite(StoreLayout(root: world.store), "consumers", [consumer])
            try world.settings { $0.setting("writable", to: ["/srv/hooks"]) }
            let error = try #require(throws: MoultError.self) { try Settings.read(StoreLayout(root: world.store)) }
            #expect(error.why?.hasPrefix("it contains /srv/hooks/") == true, "\(error)")
        }
    }

    /// A missing file in the store, next to `moult.json`.
    @Test func `a step with a missing file in the store cannot rewrite moult.json`() throws {
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", writes: ["STORE/hook.log"]),
            apply: """
                (echo '{}' > STORE/moult.json) 2> /dev/null && exit 9
                (echo x > STORE/t && mv STORE/t STORE/moult.json) 2> /dev/null && exit 9
                (rm STORE/food.db) 2> /dev/null && exit 9
                echo done > STORE/hook.log; echo '{"reply":"result"}'
                """)
        let world = try StepWorld(program)
        try world.adapt(program)
        try world.settings { $0.setting("writable", to: [.string("\(world.store)/hook.log")]) }
        let before = try Files.read("\(world.store)/moult.json", limit: 1 << 20)
        #expect(try world.failure() == nil)
        #expect(try Files.read("\(world.store)/hook.log", limit: 10) == Array("done\n".utf8))
        #expect(try Files.read("\(world.store)/moult.json", limit: 1 << 20) == before)
    }

    /// That user could exchange the directory for a link to root's files while the step starts.
    @Test(
        .enabled(if: geteuid() == 0, "only root may give files away"),
        arguments: [
            "chown 4001 granted/..", "chmod 777 granted", "chown 4001 granted",
            "ln -s granted link; chown -h 4001 link",
        ])
    func `root refuses a granted path that another user can change`(_ how: String) throws {
        let program = try Programs.shell(
            scratch,
            plan: Programs.planned("x", writes: [how.hasPrefix("ln") ? "GRANTED/../link/file" : "GRANTED/file"]),
            apply: "echo x > GRANTED/file; \(Programs.result)")
        let world = try StepWorld(program)
        try world.adapt(program)
        try Shell.must(["sh", "-ec", how], in: Files.directory(of: world.granted))
        let error = try #require(try world.failure())
        #expect(error.outcome == .refused, "\(error)")
        #expect(
            error.what.hasPrefix("the step test.step may not write to \(Files.directory(of: world.granted))"),
            "\(error)")
        #expect(try Files.list(world.granted) == [])
    }

    @Test func `of many messages of a step, only the first are shown`() throws {
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x"),
            prepare: """
                for number in $(seq 1000); do printf '{"reply":"log","text":"%01000d"}\\n' $number; done; \(Programs.result)
                """)
        let world = try StepWorld(program)
        let warnings = Mutex<[String]>([])
        try world.update(
            Watcher(tell: { if case .warning(let text) = $0 { warnings.withLock { $0.append(text.description) } } }))
        let logs = warnings.withLock { $0 }.filter { $0.hasPrefix("test.step: ") }
        #expect(logs.count == 21, "\(logs)")
        #expect(logs.allSatisfy { $0.utf8.count <= 520 })
        #expect(logs.last == "test.step: further messages of this step are not shown")
    }

    // MARK: names of any bytes, and special files

    private static let litter = """
        python3 -c 'import os
        os.chdir(os.environ["TMPDIR"] if "TMPDIR" in os.environ else ".")
        open(b"\\xff", "w").close(); os.mkdir(b"\\xfe"); open(b"\\xfe/\\xfd", "w").close()
        for _ in range(300): os.mkdir("n" * 255); os.chdir("n" * 255)' || exit 9
        """

    @Test func `a step that leaves names of any bytes and deep directories in its staging directory blocks nothing`()
        throws
    {
        let program = try Programs.shell(
            scratch,
            prepare: """
                directory=$(printf '%s' "$message" | sed -n 's/.*"staging":{"directory":"\\([^"]*\\)".*/\\1/p')
                export TMPDIR="$directory"; \(Self.litter); echo '{"reply":"result"}'
                """)
        let world = try StepWorld(program)
        #expect(try world.failure() == nil)
        #expect(try world.world.versions() == ["2.0.0"])
        #expect(try Files.list("\(world.store)/.moult/transactions") == [])
    }

    @Test func `a step cannot put a name that is not UTF-8 into the staged generation`() throws {
        let program = try Programs.shell(
            scratch, plan: Programs.planned("x", database: "food"),
            prepare: """
                file=$(printf '%s' "$message" | sed -n 's/.*"databases":{"food":"\\([^"]*\\)".*/\\1/p')
                python3 -c 'import os, sys; open(os.path.dirname(sys.argv[1]).encode() + b"/\\xff", "w").close()' "$file" || exit 9
                \(Programs.result)
                """)
        let world = try StepWorld(program)
        let error = try #require(try world.failure())
        #expect(error.why?.contains("(a name that is not UTF-8) was changed") == true, "\(error)")
        #expect(try world.world.versions() == ["1.0.0"])
        #expect(try Files.list("\(world.store)/.moult/transactions") == [])
    }

    @Test func `a step that leaves such names while it plans leaves nothing in the directory for temporary files`()
        throws
    {
        let program = try Programs.shell(scratch, plan: "\(Self.litter); \(Programs.planned("x"))")
        let world = try StepWorld(program)
        let temporary = try scratch.directory("tmp")
        let ended = try Shell.run(
            [BuiltMoult.path(), "plan", world.world.second, "--store", world.store], environment: ["TMPDIR": temporary])
        #expect(ended.status == 2, "\(ended)")
        #expect(try Files.list(temporary) == [])
    }

    @Test func `a step cannot create files that run with the rights of their owner or group`() throws {
        let program = try Programs.write(
            Programs.attempting(
                """
                def attempts(given):
                    here = os.environ["TMPDIR"]
                    for name, mode in ("setuid", 0o4755), ("setgid", 0o2755), ("both", 0o6711):
                        yield "open " + name, lambda: os.open(here + "/" + name, os.O_CREAT | os.O_RDWR, mode)
                        yield "temporary " + name, lambda: os.open(here, os.O_TMPFILE | os.O_RDWR, mode)
                        yield "creat " + name, lambda: call(85, (here + "/c" + name).encode(), mode)
                        yield "openat2 " + name, lambda: call(437, -100, (here + "/o" + name).encode(), struct.pack("QQQ", os.O_CREAT | os.O_RDWR, mode, 0), 24)
                        yield "mkdir " + name, lambda: os.mkdir(here + "/d" + name, mode)
                    if [name for name in os.listdir(here) if os.stat(here + "/" + name).st_mode & 0o6000]:
                        yield "left", lambda: None
                    yield "sticky", lambda: os.open(here + "/sticky", os.O_CREAT | os.O_RDWR, 0o1644)
                    yield "plain", lambda: os.open(here + "/plain", os.O_CREAT | os.O_RDWR, 0o755)
                """), scratch.path("step"))
        let world = try StepWorld(program)
        let found = try world.plan().effects.filter { $0.step == world.name }.map(\.text)
        for name in ["setuid", "setgid", "both"] {
            for way in ["open", "temporary", "creat"] { #expect(found.contains("\(way) \(name): EPERM"), "\(found)") }
            #expect(found.contains("openat2 \(name): ENOSYS"), "\(found)")
        }
        #expect(!found.contains { $0.hasPrefix("left") }, "\(found)")
        #expect(found.contains("plain: allowed") && found.contains("sticky: allowed"), "\(found)")
    }

    @Test func `a step that plans cannot take data from another program's pipe`() throws {
        let pipe = scratch.path("pipe")
        try Shell.must(["mkfifo", pipe])
        let writer = try Program(["sh", "-c", "exec 3<> '\(pipe)'; echo precious >&3; exec sleep 300"])
        defer {
            writer.signal(SIGKILL)
            writer.wait()
        }
        let program = try Programs.write(
            Programs.attempting(
                """
                def attempts(given):
                    yield "read", lambda: os.read(os.open(given["pipe"], os.O_RDONLY | os.O_NONBLOCK), 100)
                    yield "manifest", lambda: open(given["manifest"]).read()
                    yield "settings", lambda: open(message["context"]["store"] + "/moult.json").read()
                    yield "passwd", lambda: open("/etc/passwd").read()
                    yield "random", lambda: open("/dev/urandom", "rb").read(1)
                """), scratch.path("step"))
        let world = try StepWorld(program)
        try world.settings {
            $0.setting("with", to: ["pipe": .string(pipe), "manifest": .string(world.world.second)])
        }
        let found = try world.plan().effects.filter { $0.step == world.name }.map(\.text)
        #expect(
            found == ["read: EACCES", "manifest: allowed", "settings: allowed", "passwd: allowed", "random: allowed"])
    }
}
