import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// While it plans, a step attacks the machine, the app's database and other processes. Dangerous calls are made in a
/// harmless form: the step thaws a file system that is not frozen, and gives a process the scheduling that the process
/// already has. `ProfileTests` evaluates the filter for all other calls.
@Suite struct StepAttackTests {
    static let attacker = Programs.attempting(
        """
        def environment_of_parent():
            if b"=" not in open("/proc/%d/environ" % parent, "rb").read():
                raise OSError(errno.EACCES, "environ")

        def capabilities():
            for line in open("/proc/self/status"):
                if line.startswith("Cap") and int(line.split()[1], 16) != 0 and not (line.startswith("CapBnd") and os.getuid()):
                    return
            raise OSError(errno.EPERM, "capabilities")

        def attempts(given):
            directory = lambda: os.open("/", os.O_RDONLY)
            database = lambda: os.open(given["database"], os.O_RDONLY)
            read_lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0x40000002, 510, 0)
            yield "thaw a file system", lambda: fcntl.ioctl(directory(), 0xC0045878, 0)
            yield "shut a file system down", lambda: fcntl.ioctl(database(), 0x8004587D, b"\\xff" * 4)
            yield "lock the app's database", lambda: fcntl.fcntl(database(), fcntl.F_SETLK, read_lock)
            yield "wait for a lock on the app's database", lambda: fcntl.fcntl(database(), fcntl.F_SETLKW, read_lock)
            yield "lock the app's database by descriptor", lambda: fcntl.fcntl(database(), 37, read_lock)
            yield "take a lease on the app's database", lambda: fcntl.fcntl(database(), 1024, fcntl.F_RDLCK)
            yield "remove shared memory", lambda: call(31, given["segment"], 0, None)
            yield "make shared memory", lambda: call(29, 0, 4096, 0o1600)
            yield "make a message queue", lambda: call(68, 0, 0o1600)
            yield "make a semaphore", lambda: call(64, 0, 1, 0o1600)
            yield "change a mount", lambda: call(467, -100, b"/", 1, None, 0)
            yield "schedule the parent", lambda: os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0))
            yield "schedule pid 1", lambda: os.sched_setscheduler(1, os.SCHED_OTHER, os.sched_param(0))
            yield "run in real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            yield "move the parent to a processor", lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent))
            yield "change the parent's disk priority", lambda: call(251, 1, parent, call(252, 1, parent))
            yield "change the parent's limits", lambda: call(302, parent, 4, struct.pack("QQ", 0, 2 ** 64 - 1), None)
            yield "read the parent's environment", environment_of_parent
            yield "outlive the parent", lambda: call(157, 1, 0)
            yield "have signals sent to the parent", lambda: fcntl.fcntl(0, 8, parent)
            yield "choose the signal", lambda: fcntl.fcntl(0, 10, 9)
            yield "keep a capability", capabilities
        """)

    private static let denials = ["EPERM", "EACCES", "ENOSYS"]

    @Test(arguments: CommandWorld.users) func `a step that attacks while planning changes nothing`(user: UInt32) throws
    {
        let segment = shmget(0, 4096, Int32(0o1666))
        try #require(segment >= 0)
        defer { shmctl(segment, IPC_RMID, nil) }
        if geteuid() == 0 {
            // The user owns the shared memory segment, so only the guard can prevent its removal.
            var facts = shmid_ds()
            #expect(shmctl(segment, IPC_STAT, &facts) == 0)
            (facts.shm_perm.uid, facts.shm_perm.gid) = (user, user)
            #expect(shmctl(segment, IPC_SET, &facts) == 0)
        }
        let world = try CommandWorld(
            Self.attacker, as: user, with: ["database": "/dev/null", "segment": .size(Int(segment))])
        try world.world.settings {
            $0.setting(
                "with", to: ["database": .string("\(world.world.store)/user.db"), "segment": .size(Int(segment))])
        }
        let found = try world.planned()
        #expect(found.count == 22)
        for line in found { #expect(Self.denials.contains { line.hasSuffix(": \($0)") }, "\(line)") }
        var facts = shmid_ds()
        #expect(shmctl(segment, IPC_STAT, &facts) == 0)
    }

    /// A process of the step closes all connections to the command, disables its parent-death signal, and waits.
    static let survivor = """
        #!/usr/bin/env python3
        import ctypes, json, os, signal, subprocess, sys
        libc = ctypes.CDLL(None)
        message = json.loads(sys.stdin.readline())
        if message["message"] == "describe":
            print(json.dumps({"reply": "result", "protocol": 1, "name": "test.step", "summary": "stays", "planIsPure": True}))
        elif message["message"] == "plan":
            libc.prctl(1, 0)
            for number in range(3, 64):
                try:
                    os.close(number)
                except OSError:
                    pass
            for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGIO, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            for escape in (os.setsid, os.setpgrp):
                try:
                    escape()
                except OSError:
                    pass
            child = subprocess.Popen(["sleep", message["context"]["with"]["mark"]])
            while True:
                signal.pause()
        """

    @Test(.tags(.thorough), arguments: CommandWorld.users)
    func `no process of a step outlives a command that is killed`(user: UInt32)
        throws
    {
        let mark = "4323.\(getpid())\(Int.random(in: 1000...9999))"
        let world = try CommandWorld(Self.survivor, as: user, with: ["mark": .string(mark)])
        func running() throws -> [String] {
            try Shell.run(["pgrep", "-f", "^sleep \(mark)"]).output.split(separator: "\n").map { String($0) }
        }
        let moult = try Background(world.command("plan", world.world.world.second))
        try moult.wait { try !running().isEmpty }
        let parent = try #require(Int32(Shell.must(["ps", "-o", "ppid=", "-p", running()[0]]).trimmed))
        moult.stop()
        defer { for pid in [parent] + ((try? running()) ?? []).compactMap({ Int32($0) }) { kill(pid, SIGKILL) } }
        for _ in 0..<500 where try !running().isEmpty || kill(parent, 0) == 0 { usleep(10_000) }
        #expect(try running() == [])
        #expect(kill(parent, 0) == -1)
    }
}
