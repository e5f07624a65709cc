/// The system calls that each profile allows. SECURITY.md explains them.
extension Profile {
    /// Returns all allowed calls. Landlock does not check truncation before version 3, nor signals before version 6, so with
    /// older versions these rules restrict both.
    package func rules(landlock: Int, process: Int32) -> [SystemCallRule] {
        if self == .archive { return Self.plain(Self.decoding) + [Self.signalsToItself(process)] }
        var rules = Self.plain(Self.everyProcess) + Self.arguments + opening(landlock)
        switch self {
        case .archive: break
        case .examiner:
            rules += Self.plain(Self.files) + Self.locks + Self.alone(process)
        case .fetch:
            rules += Self.plain(Self.files) + Self.alone(process) + Self.plain(Self.transfers)
        case .program(let plans, _):
            rules += Self.plain(Self.files + " " + Self.changes + " " + Self.programs)
            rules += [.init("clone", .init(0, is: 0, in: Self.namespacesAndParent))]
            rules += plans && landlock < 6 ? Self.signalsInGroup : Self.plain("kill tkill tgkill")
            rules += plans ? [] : Self.locks + Self.plain("flock socketpair")
            if landlock >= 3 { rules += Self.plain("truncate") }
        }
        return rules + sockets(sockets)
    }

    private static func plain(_ names: String) -> [SystemCallRule] {
        names.split(whereSeparator: \.isWhitespace).map { SystemCallRule(String($0)) }
    }

    // MARK: calls without argument checks

    /// Memory, threads, time, and open files.
    private static let everyProcess = """
        read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek _llseek close close_range dup dup2 dup3
        pipe pipe2 poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
        eventfd2 brk mmap mmap2 munmap mremap mprotect madvise mincore msync mlock mlock2 munlock munlockall pkey_alloc pkey_free
        pkey_mprotect membarrier map_shadow_stack rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend
        rt_sigtimedwait sigaltstack restart_syscall futex futex_waitv futex_wait futex_wake futex_requeue set_robust_list
        get_robust_list rseq set_tid_address gettid getpid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getresuid
        getresgid getgroups exit exit_group sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_getattr
        sched_get_priority_max sched_get_priority_min sched_rr_get_interval getcpu getpriority ioprio_get get_mempolicy
        clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage sysinfo uname getrlimit getrandom
        arch_prctl set_thread_area get_thread_area capget
        """

    /// The calls needed to read and write files that are already open, and to decode archives.
    private static let decoding = """
        read write pread64 lseek close fstat brk mmap munmap mremap mprotect madvise rt_sigaction rt_sigprocmask rt_sigreturn
        sigaltstack restart_syscall futex gettid getpid clock_gettime getrandom sched_yield sched_getaffinity sysinfo exit
        exit_group
        """

    /// Inspecting files, and reading, changing and removing those that Landlock allows.
    private static let files = """
        stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat getcwd getdents getdents64 statfs
        fstatfs chdir fchdir umask getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr ftruncate fsync fdatasync
        sync_file_range fadvise64 readahead unlink unlinkat copy_file_range sendfile
        """

    /// Creating and moving files where Landlock allows it.
    private static let changes = """
        mkdir mkdirat rmdir rename renameat renameat2 link linkat symlink symlinkat fallocate splice tee vmsplice
        memfd_create
        """

    /// The calls that programs in any language use.
    private static let programs = """
        fork vfork execve execveat wait4 waitid pidfd_open pause alarm getitimer setitimer timer_create timer_settime
        timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime signalfd signalfd4
        inotify_init inotify_init1 inotify_add_watch inotify_rm_watch mlockall mbind set_mempolicy io_setup io_submit io_getevents
        io_pgetevents io_cancel io_destroy sync syncfs setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid
        setgroups seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self sendto recvfrom sendmsg recvmsg
        sendmmsg recvmmsg shutdown getsockname getpeername getsockopt setsockopt
        """

    /// Additional calls of libcurl.
    private static let transfers = "sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown"

    // MARK: calls with argument checks

    /// The flags of `clone` that create namespaces, and CLONE_PARENT, which makes the new process a child of the caller's
    /// parent.
    private static let namespacesAndParent = 0x7e02_0080 | 0x8000

    private static let arguments: [SystemCallRule] =
        ioctls.map { .init("ioctl", .init(1, is: $0)) }
        + fcntls.map { .init("fcntl", .init(1, is: $0)) }
        + processControls.map { .init("prctl", .init(0, is: $0)) }
        + [
            // The process can read its own limits, but not change any.
            .init("prlimit64", .init(0, is: 0), .isZero(2)),
            .init("sched_setaffinity", .init(0, is: 0)),
            // Queries the personality.
            .init("personality", .init(0, is: 0xffff_ffff)),
        ]

    /// Requests for terminal properties, the number of readable bytes, descriptor settings, shared blocks of files, and the
    /// layout and flags of files.
    private static let ioctls = [
        0x5401, 0x5413, 0x540f, 0x541b,  // TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD
        0x5421, 0x5450, 0x5451,  // FIONBIO, FIONCLEX, FIOCLEX
        0x4004_9409, 0x4020_940d,  // FICLONE, FICLONERANGE
        0x0002, 0xc020_660b, 0x8008_6601, 0x801c_581f,  // FIGETBSZ, FS_IOC_FIEMAP, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR
    ]

    /// F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETOWN, F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS,
    /// F_GET_SEALS. With these alone, a process cannot set the owner of signals, take leases or lock files.
    private static let fcntls = [0, 1, 2, 3, 4, 9, 1030, 1031, 1032, 1033, 1034]

    /// PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_SET_SECCOMP, PR_CAPBSET_READ,
    /// PR_GET_TIMERSLACK, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS, PR_SET_VMA. PR_SET_PDEATHSIG is
    /// missing, so that the process still ends with the process that started it.
    private static let processControls = [2, 3, 15, 16, 21, 22, 23, 30, 38, 39, 40, 0x5356_4d41]

    /// F_GETLK, F_SETLK, F_SETLKW and their forms for open file descriptions.
    private static let locks: [SystemCallRule] = [5, 6, 7, 36, 37, 38].map { .init("fcntl", .init(1, is: $0)) }

    /// Returns the rules that allow a process to start threads and to send signals to itself.
    private static func alone(_ process: Int32) -> [SystemCallRule] {
        [.init("clone", .init(0, is: 0x1_0000, in: 0x1_0000 | namespacesAndParent)), signalsToItself(process)]
    }

    /// Returns the rule that allows a process to send signals to its own threads, as `abort()` does.
    private static func signalsToItself(_ process: Int32) -> SystemCallRule {
        .init("tgkill", .init(0, is: Int(process)))
    }

    /// Signals to the process's own group, and SIGURG to threads: the Go scheduler uses this signal, which is ignored by
    /// default.
    private static let signalsInGroup: [SystemCallRule] = [
        .init("kill", .init(0, is: 0)), .init("tgkill", .init(2, is: 23)), .init("tkill", .init(1, is: 23)),
    ]

    /// Returns the rules for opening a file. If Landlock does not check truncation, O_TRUNC requires write access, which
    /// Landlock does check. A program cannot create a file that runs with the rights of its owner or group.
    private func opening(_ landlock: Int) -> [SystemCallRule] {
        let truncates = 0x200
        // O_CREAT, and the part of O_TMPFILE that is not O_DIRECTORY.
        let creates = 0x40_0040
        let (setID, noSetID) = (0o6000, 0)
        let ways = landlock >= 3 ? [(0, 0)] : [(0, truncates), (1, 3), (2, 3)]
        if isAlone, landlock >= 3 { return Self.plain("open openat openat2") }
        let rules = [("open", 1), ("openat", 2)].flatMap { name, flags in
            ways.flatMap { value, mask in
                isAlone
                    ? [SystemCallRule(name, .init(flags, is: value, in: mask))]
                    : [
                        SystemCallRule(name, .init(flags, is: value, in: mask | creates)),
                        SystemCallRule(
                            name, .init(flags, is: value, in: mask), .init(flags + 1, is: noSetID, in: setID)),
                    ]
            }
        }
        return isAlone ? rules : rules + [.init("creat", .init(1, is: noSetID, in: setID))]
    }

    private func sockets(_ sockets: Sockets) -> [SystemCallRule] {
        // AF_UNIX (1), AF_INET (2), AF_INET6 (10), and AF_NETLINK (16), which the C library uses to query this machine's
        // addresses.
        var made: [SystemCallRule] = []
        if sockets != .none { made.append(.init("socket", .init(0, is: 1))) }
        if sockets == .all {
            made += [2, 10].map { .init("socket", .init(0, is: $0)) }
            made.append(.init("socket", .init(0, is: 16), .init(2, is: 0)))
        }
        guard sockets != .none else { return [] }
        made += Self.plain("connect bind")
        if self == .fetch { return made + Self.plain("getsockname getpeername getsockopt setsockopt socketpair") }
        return made + Self.plain("listen accept accept4")
    }
}
