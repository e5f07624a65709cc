import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// The system calls that the kernel denies to a step while it plans.
@Suite struct EnforcementTests {
    /// A step that tries each of these calls while it plans, and returns the results in its plan.
    static let prober = """
        #!/usr/bin/env python3
        import ctypes, errno, fcntl, json, os, signal, socket, sys
        libc = ctypes.CDLL(None, use_errno=True)
        message = json.loads(sys.stdin.readline())

        def call(name, *arguments):
            if getattr(libc, name)(*arguments) < 0:
                raise OSError(ctypes.get_errno(), name)

        def number(number, *arguments):
            if libc.syscall(number, *arguments) < 0:
                raise OSError(ctypes.get_errno(), number)

        def attempts(file, directory):
            beside = directory + "/made"
            yield "open for writing", lambda: open(file, "a")
            yield "create", lambda: open(beside, "w")
            yield "truncate", lambda: os.truncate(file, 0)
            yield "unlink", lambda: os.unlink(file)
            yield "rename", lambda: os.rename(file, beside)
            yield "link", lambda: os.link(file, beside)
            yield "symlink", lambda: os.symlink(file, beside)
            yield "mkdir", lambda: os.mkdir(beside)
            yield "rmdir", lambda: os.rmdir(directory + "/empty")
            yield "mkfifo", lambda: os.mkfifo(beside)
            yield "chmod", lambda: os.chmod(file, 0o777)
            yield "fchmod", lambda: os.fchmod(os.open(file, os.O_RDONLY), 0o777)
            yield "chown", lambda: os.chown(file, 1, 1)
            yield "lchown", lambda: os.lchown(file, 1, 1)
            yield "utime", lambda: os.utime(file)
            yield "setxattr", lambda: os.setxattr(file, "user.x", b"y")
            yield "removexattr", lambda: os.removexattr(file, "user.x")
            yield "flags", lambda: fcntl.ioctl(os.open(file, os.O_RDONLY), 0x40086602, b"\\0" * 8)
            yield "flock", lambda: fcntl.flock(os.open(file, os.O_RDONLY), fcntl.LOCK_EX)
            yield "socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            yield "udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            yield "unix socket", lambda: socket.socket(socket.AF_UNIX)
            yield "socketpair", lambda: socket.socketpair()
            yield "kill", lambda: os.kill(os.getppid(), 0)
            yield "setsid", lambda: os.setsid()
            yield "setpgid", lambda: os.setpgid(0, 0)
            yield "shmget", lambda: call("shmget", 4321, 4096, 0o1600)
            yield "mount", lambda: call("mount", b"none", directory.encode(), b"tmpfs", 0, None)
            yield "umount", lambda: call("umount2", directory.encode(), 2)
            yield "unshare", lambda: call("unshare", 0x04000000)
            yield "chroot", lambda: os.chroot(directory)
            yield "ptrace", lambda: call("ptrace", 16, os.getppid(), None, None)
            yield "io_uring", lambda: number(425, 4, ctypes.create_string_buffer(256))
            yield "open_by_handle_at", lambda: call("open_by_handle_at", -100, ctypes.create_string_buffer(64), 0)
            yield "bpf", lambda: number(321, 0, None, 0)
            yield "a file's memory", lambda: open("/proc/%d/mem" % os.getppid(), "r+b")

        effects = []
        if message["message"] == "describe":
            answer = {"reply": "result", "protocol": 1, "name": "test.step", "summary": "tries", "planIsPure": True}
        elif message["message"] == "plan":
            for name, attempt in attempts(message["context"]["with"]["file"], message["context"]["with"]["directory"]):
                try:
                    attempt()
                    found = "allowed"
                except OSError as error:
                    found = errno.errorcode[error.errno]
                effects.append({"change": {"do": "confirm", "text": name + ": " + found}})
            for path in [os.environ["HOME"] + "/mine", "/dev/null"]:
                open(path, "w").write("x")
            answer = {"reply": "result", "effects": effects}
        else:
            answer = {"reply": "result"}
        print(json.dumps(answer), flush=True)
        """

    @Test func `a step that plans cannot make a system call that changes anything`() throws {
        let scratch = try Scratch()
        let directory = try scratch.directory("place")
        _ = try scratch.directory("place/empty")
        let file = "\(directory)/file"
        try Files.writeNew(Array("x".utf8), to: file)
        let world = try StepWorld(
            try Programs.write(Self.prober, scratch.path("prober")),
            with: ["file": .string(file), "directory": .string(directory)])
        let before = try Tree(directory)
        let found = try world.plan().effects.filter { $0.step == "test.step" }.map(\.text)
        #expect(found.count == 36)
        for line in found {
            #expect(["EPERM", "EACCES", "EROFS"].contains { line.hasSuffix(": \($0)") }, "\(line)")
        }
        #expect(try Tree(directory) == before)
    }

    /// The command starts a process for each message, so twenty more steps must only take the time of twenty more
    /// messages. The processor time of this process and of all that it started counts, because other processes also use
    /// the machine. Twenty programs, started one after another, are measured for comparison in the same rounds. The medians
    /// count: a busy machine, whose caches are shared, slows both down, but the shortest times may be from different moments.
    @Test(.tags(.thorough), .enabled(if: Sanitizer.environment.isEmpty, "a sanitizer makes only the command slower"))
    func `a message to a step takes less than eight times the processor time of starting a process`() throws {
        let scratch = try Scratch()
        let world = try StepWorld(Programs.c(scratch, Programs.nothing))
        func time(_ command: [String], count: Int = 1) throws -> Duration {
            let start = Self.processorTime
            for _ in 0..<count {
                let ended = try Shell.run(command)
                #expect(ended.status == 0, "\(ended)")
            }
            return Self.processorTime - start
        }
        let steps = [try BuiltMoult.path(), "steps", "--store", world.store]
        let path = "\(world.store)/moult.json"
        let json = try JSON(parsing: Files.read(path, limit: 1 << 20) ?? [], as: .draft, source: path)
        let step = try #require(json["steps"]?[world.name])
        let parts = (0...20).map { JSON.Member($0 == 0 ? world.name : "test.step\($0)", step) }
        let many = json.setting("steps", to: .object(parts))
        var rounds: (one: [Duration], all: [Duration], processes: [Duration]) = ([], [], [])
        func median(_ times: [Duration]) -> Duration { times.sorted()[times.count / 2] }
        var message: Duration { (median(rounds.all) - median(rounds.one)) / 20 }
        var process: Duration { median(rounds.processes) / 20 }
        for run in 0..<100 where run < 10 || message >= process * 8 {
            try Files.replace(path, with: Array(json.pretty.utf8))
            try rounds.one.append(time(steps))
            try Files.replace(path, with: Array(many.pretty.utf8))
            try rounds.all.append(time(steps))
            try rounds.processes.append(time(["true"], count: 20))
        }
        print("a message to a step: \(message), a process: \(process)")
        #expect(message < process * 8)
        #expect(message > .microseconds(100), "no process was started")
    }

    private static var processorTime: Duration {
        [RUSAGE_SELF, RUSAGE_CHILDREN].reduce(.zero) { sum, who in
            var usage = rusage()
            getrusage(who.rawValue, &usage)
            return [usage.ru_utime, usage.ru_stime].reduce(sum) {
                $0 + .seconds($1.tv_sec) + .microseconds($1.tv_usec)
            }
        }
    }

    @Test func `the environment of a step contains only the documented variables`() throws {
        let scratch = try Scratch()
        let program = try Programs.shell(
            scratch,
            plan: """
                names=$(env | sed 's/=.*//' | sort | tr '\\n' ' '); open=$(ls /proc/self/fd | tr '\\n' ' ')
                echo '{"reply":"result","effects":[{"change":{"do":"confirm","text":"'"$names: $open"'"}}]}'
                """)
        let text = try #require(try StepWorld(program).plan().effects.first { $0.step == "test.step" }?.text)
        // The shell sets PWD and OLDPWD; one descriptor belongs to the listing.
        #expect(text == "HOME LANG MOULT_PROTOCOL MOULT_STEP PATH PWD TMPDIR : 0 1 2 3 4 ", "\(text)")
    }
}
