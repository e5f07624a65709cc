import MoultBasics
import MoultFiles
import MoultLibc
import Testing

/// Evaluates the filter of each profile for every call, without making the call.
@Suite struct ProfileTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let profile: Profile
        let landlock: Int
        var testDescription: String { "\(profile), Landlock \(landlock)" }
    }

    static let process: Int32 = 4711
    static let profiles: [Profile] =
        [.examiner, .archive, .fetch]
        + [false, true].flatMap { plans in
            [Profile.Sockets.none, .local, .all].map { .program(plans: plans, sockets: $0) }
        }
    /// Landlock does not handle truncation before version 3 or signals before version 6.
    static let cases = profiles.flatMap { profile in [0, 2, 3, 7].map { Case(profile: profile, landlock: $0) } }

    private func machine(_ one: Case) throws -> FilterMachine {
        FilterMachine(program: try Filter.program(one.profile, landlock: one.landlock, process: Self.process))
    }

    /// Returns arguments that match each rule for the call, and arguments that differ from these in one bit. All bits that the
    /// rules do not mention are 0 or 1.
    private func samples(_ rules: [SystemCallRule]) -> [[UInt64]] {
        var samples: [[UInt64]] = [.init(repeating: 0, count: 6), .init(repeating: .max, count: 6)]
        for rule in rules {
            for rest in [UInt64(0), .max] {
                var fits = [UInt64](repeating: rest, count: 6)
                for argument in rule.arguments {
                    fits[argument.index] = rest & ~argument.mask | argument.value
                }
                samples.append(fits)
                for argument in rule.arguments {
                    for bit in 0..<64 where argument.mask >> bit & 1 == 1 {
                        var misses = fits
                        misses[argument.index] ^= 1 << bit
                        samples.append(misses)
                    }
                }
            }
        }
        return samples
    }

    @Test(arguments: cases) func `the filter handles every system call as listed`(_ one: Case) throws {
        let machine = try machine(one)
        let list = ListedCalls(one)
        var wrong: [String] = []
        for number in 0...600 {
            for arguments in samples(list.rules[number] ?? []) {
                let (found, wanted) = (machine.answer(number, arguments), list.answer(number, arguments))
                if found != wanted {
                    wrong.append("\(number) \(arguments): \(String(describing: found)), not \(wanted)")
                }
            }
        }
        #expect(wrong.prefix(10) == [])
    }

    /// The kernel also ignores the upper half of the request.
    @Test(arguments: profiles.map { Case(profile: $0, landlock: 7) })
    func `every device request that is not in the list is denied`(_ one: Case) throws {
        let machine = try machine(one)
        let number = try #require(SystemCallRule.number(of: "ioctl"))
        let known = try KernelRequests.all()
        #expect(known.count > 1500)
        var allowed: Set<String> = []
        for (name, request) in known {
            for upper in [UInt64(0), 0xffff_ffff] {
                let answer = machine.answer(number, [3, upper << 32 | request, 0, 0, 0, 0])
                if answer == .allow { allowed.insert(name) } else { #expect(answer == .error(Int(EPERM))) }
            }
        }
        if one.profile == .archive { return #expect(allowed == []) }
        // Two names with the same number count as one request.
        let harmless: Set<String> = [
            "TCGETS", "TIOCGWINSZ", "TIOCGPGRP", "FIONREAD", "FIONBIO", "FIONCLEX", "FIOCLEX", "FICLONE",
            "BTRFS_IOC_CLONE", "FICLONERANGE", "BTRFS_IOC_CLONE_RANGE", "FIGETBSZ", "FS_IOC_FIEMAP", "FS_IOC_GETFLAGS",
            "FS_IOC_FSGETXATTR",
        ]
        #expect(allowed.subtracting(harmless) == [])
        #expect(allowed.isSuperset(of: ["TCGETS", "FIONBIO", "FICLONE"]))
    }

    /// Calls that no profile may allow, whatever the other arguments are.
    static let dangerous =
        [
            "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon",
            "swapoff", "acct",
            "mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "open_tree", "move_mount", "fsopen",
            "fsconfig",
            "fsmount", "fspick", "mount_setattr", "quotactl", "quotactl_fd", "sethostname", "setdomainname",
            "settimeofday",
            "clock_settime", "clock_adjtime", "adjtimex", "syslog", "vhangup", "iopl", "ioperm", "modify_ldt", "bpf",
            "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "ptrace",
            "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_getfd",
            "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "open_by_handle_at", "name_to_handle_at",
            "fanotify_init", "add_key", "request_key", "keyctl", "shmget", "shmat", "shmctl", "msgget", "msgctl",
            "semget",
            "semctl", "mq_open", "mq_unlink", "mq_notify", "setrlimit", "setpriority", "sched_setscheduler",
            "sched_setparam",
            "sched_setattr", "ioprio_set", "migrate_pages", "move_pages", "chmod", "fchmod", "fchmodat", "fchmodat2",
            "chown",
            "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr",
            "fsetxattr",
            "removexattr", "lremovexattr", "fremovexattr", "mknod", "mknodat", "setsid", "setpgid", "capset", "clone3",
            "memfd_secret", "lookup_dcookie", "sysfs", "uselib",
        ].compactMap { name in SystemCallRule.number(of: name).map { (name, $0) } }
        + [("setxattrat", 463), ("removexattrat", 466), ("open_tree_attr", 467), ("file_setattr", 469)]

    @Test(arguments: cases) func `no dangerous system call is allowed`(_ one: Case) throws {
        let machine = try machine(one)
        #expect(Self.dangerous.count > 90)
        for (name, number) in Self.dangerous {
            for arguments in samples([]) { #expect(machine.answer(number, arguments) != .allow, "\(name)") }
        }
    }

    @Test(arguments: cases) func `system calls of other architectures are not allowed`(_ one: Case) throws {
        let machine = try machine(one)
        let none = [UInt64](repeating: 0, count: 6)
        // i386, and x32, whose calls are those of x86-64 with an additional bit.
        #expect(machine.answer(4, none, architecture: 0x4000_0003) == .kill)
        for number in 0...600 { #expect(machine.answer(0x4000_0000 | number, none) == .error(Int(ENOSYS))) }
    }

    /// A misspelled name would leave a call out of the filter.
    @Test(arguments: cases) func `every name in the list is a system call`(_ one: Case) {
        for rule in one.profile.rules(landlock: one.landlock, process: Self.process) {
            #expect(rule.isKnown, "\(rule.name)")
        }
    }

    @Test func `a process that confines itself can signal only itself and start only threads`() throws {
        for profile in [Profile.examiner, .fetch] {
            let machine = try machine(Case(profile: profile, landlock: 2))
            func answer(_ name: String, _ arguments: UInt64...) throws -> FilterMachine.Answer? {
                machine.answer(
                    try #require(SystemCallRule.number(of: name)),
                    arguments + .init(repeating: 0, count: 6 - arguments.count))
            }
            #expect(try answer("tgkill", 4711, 4712, 6) == .allow)
            #expect(try answer("tgkill", 4710, 4712, 6) == .error(Int(EPERM)))
            #expect(try answer("kill", 4711, 9) == .error(Int(EPERM)))
            #expect(try answer("clone", 0x3d0f00) == .allow)
            #expect(try answer("clone", 17) == .error(Int(EPERM)))
            #expect(try answer("execve") == .error(Int(EPERM)))
            #expect(try answer("execveat") == .error(Int(EPERM)))
        }
    }
}

extension ProfileTests {
    /// The process has everything that it needs before the archive arrives.
    @Test(arguments: [0, 2, 7]) func `a process that reads archives cannot open, start or change anything`(
        landlock: Int
    )
        throws
    {
        let machine = try machine(Case(profile: .archive, landlock: landlock))
        let calls = [
            "open", "openat", "openat2", "stat", "newfstatat", "statx", "access", "readlink", "getdents64", "unlink",
            "rename",
            "mkdir", "ftruncate", "truncate", "link", "socket", "connect", "sendmsg", "recvmsg", "clone", "fork",
            "vfork",
            "execve", "execveat", "kill", "tkill", "ioctl", "fcntl", "prctl", "prlimit64", "dup", "pipe2",
            "memfd_create",
        ]
        for name in calls {
            let number = try #require(SystemCallRule.number(of: name))
            for arguments in samples([]) { #expect(machine.answer(number, arguments) != .allow, "\(name)") }
        }
        let signal = try #require(SystemCallRule.number(of: "tgkill"))
        #expect(machine.answer(signal, [UInt64(Self.process), 1, 6, 0, 0, 0]) == .allow)
        #expect(machine.answer(signal, [UInt64(Self.process) + 1, 1, 6, 0, 0, 0]) != .allow)
    }
}

/// The answer to a call according to the lists of a profile.
private struct ListedCalls {
    let rules: [Int: [SystemCallRule]]
    private let missing: Set<Int>

    init(_ one: ProfileTests.Case) {
        let all = one.profile.rules(landlock: one.landlock, process: ProfileTests.process)
        rules = Dictionary(grouping: all.filter { $0.number != nil }) { $0.number ?? -1 }
        missing = Set(one.profile.notImplemented(landlock: one.landlock))
    }

    func answer(_ number: Int, _ arguments: [UInt64]) -> FilterMachine.Answer {
        let isAllowed = (rules[number] ?? []).contains { rule in
            rule.arguments.allSatisfy { arguments[$0.index] & $0.mask == $0.value }
        }
        if isAllowed { return .allow }
        return .error(Int(number >= Profile.firstUnknown || missing.contains(number) ? ENOSYS : EPERM))
    }
}

/// The ioctl requests in the kernel's headers.
///
/// `ioctls.txt` has the requests of linux-libc-dev 6.1, with the numbers computed by a compiler;
/// `scripts/ioctls` writes the file.
enum KernelRequests {
    static func all() throws -> [(name: String, request: UInt64)] {
        let path = "\(Files.directory(of: #filePath))/ioctls.txt"
        let text = String(decoding: try Files.read(path, limit: 1 << 20) ?? [], as: UTF8.self)
        return text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 2, let request = UInt64(words[0].dropFirst(2), radix: 16) else { return nil }
            return (String(words[1]), request)
        }
    }
}
