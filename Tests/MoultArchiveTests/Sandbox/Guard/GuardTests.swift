import MoultBasics
import MoultLibc
import TestSupport
import Testing

@testable import MoultFiles

/// A process under the guard tries one action after the other.
@Suite(.enabled(if: Guard.level.hasSeccomp && Guard.level.landlock >= 3, "this kernel has other guards"))
struct GuardTests {
    /// Actions that Landlock denies, because everything outside the scratch directory is read-only.
    static let changes = [
        "write", "append", "open.truncate", "truncate", "create", "unlink", "mkdir", "rmdir", "rename", "rename.in",
        "link", "link.in", "symlink", "mkfifo",
    ]

    @Test(arguments: changes, Probed.Way.allCases)
    func `a confined process changes nothing outside its directory`(call: String, way: Probed.Way) throws {
        let free = try Probed()
        #expect(try free.ask(call, nil) == "\(call): done")

        let guarded = try Probed()
        let before = try Tree(guarded.world)
        let answer = try guarded.ask(call, way)
        let denials = ["Permission denied", "Operation not permitted", "Invalid cross-device link"]
        #expect(denials.map { "\(call): \($0)" }.contains(answer))
        #expect(try Tree(guarded.world) == before)
    }

    /// Actions that Landlock does not check, and actions that do not concern files.
    static let calls = [
        "chmod", "chmod.scratch", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utimes",
        "utimensat", "futimens", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
        "setxattrat", "file_setattr", "FS_IOC_SETFLAGS", "mknod",
        "tcp", "udp", "tcp6", "unix", "raw", "netlink", "bind", "connect", "listen", "accept",
        "ptrace", "process_vm_readv", "namespace", "unshare", "setns", "mount", "umount", "move_mount", "chroot",
        "io_uring", "bpf", "perf", "open_by_handle_at", "keyctl", "module", "reboot", "clock", "limits",
    ]

    @Test(arguments: calls, [Probed.Way.spawned, .alone])
    func `a dangerous call of a confined process is denied`(call: String, way: Probed.Way) throws {
        // Without the guard, only root could make most of these calls, so only a run as root shows that the guard
        // denies them.
        if geteuid() == 0 { #expect(try Probed().ask(call, nil) != "\(call): Operation not permitted") }
        let guarded = try Probed()
        let before = try Tree(guarded.world)
        #expect(try guarded.ask(call, way) == "\(call): Operation not permitted")
        #expect(try Tree(guarded.world) == before)
    }

    @Test(arguments: ["exec", "fork", "kill", "tgkill"])
    func `a process that confines itself cannot start or signal other processes`(call: String) throws {
        #expect(try Probed().ask(call, .alone) == "\(call): Operation not permitted")
    }

    @Test(arguments: Probed.Way.allCases)
    func `a confined process has no capabilities`(way: Probed.Way) throws {
        if geteuid() == 0 { #expect(try Probed().ask("capabilities", nil) == "capabilities: done") }
        #expect(try Probed().ask("capabilities", way) == "capabilities: Operation not permitted")
    }

    @Test(arguments: Probed.Way.allCases)
    func `a confined process can do what its profile allows`(way: Probed.Way) throws {
        var calls = ["scratch.create", "scratch.truncate", "scratch.unlink", "thread", "tgkill.self", "limits.read"]
        if way != .reads { calls += ["read", "list", "null"] }
        if way == .spawned { calls += ["scratch.mkdir", "kill.self"] }
        // A process that confines itself has only its existing output open.
        if way == .alone { calls.removeAll { $0 == "null" } }
        #expect(try Probed().ask(calls, way) == calls.map { "\($0): done" })
    }

    @Test(arguments: ["read", "list", "memory"])
    func `a confined process can read only the specified files`(call: String) throws {
        #expect(try Probed().ask(call, .reads) == "\(call): Permission denied")
    }

    @Test
    func `a confined process cannot read the memory of other processes`() throws {
        let answer = try Probed().ask("memory", .spawned)
        #expect(["memory: Permission denied", "memory: Operation not permitted"].contains(answer))
    }
}

struct LevelTests {
    @Test(arguments: [
        (7, true, "Landlock ABI 7, seccomp"), (1, false, "Landlock ABI 1 only: this kernel has no seccomp"),
        (0, true, "seccomp only: this kernel has no Landlock"),
        (0, false, "limits only: this kernel has neither Landlock nor seccomp"),
    ])
    func `the protection level is described`(landlock: Int, hasSeccomp: Bool, words: String) {
        #expect(Guard.Level(landlock: landlock, hasSeccomp: hasSeccomp).description == words)
    }
}
