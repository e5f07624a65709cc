import CLinux
import MoultLibc

/// System calls by name. Unless the name says otherwise, they affect a file outside the scratch directory.
struct Probe {
    let scratch: String
    let file: String

    private var directory: String { String(file[..<(file.lastIndex(of: "/") ?? file.endIndex)]) }

    func ask(_ name: String) -> Int {
        guard let answer = onFiles(name) ?? onAttributes(name) ?? onTheRest(name) else {
            print("the probe does not know \(name)")
            exit(1)
        }
        return answer
    }

    private func onFiles(_ name: String) -> Int? {
        switch name {
        case "read": open(file, O_RDONLY)
        case "list": open(directory, O_RDONLY | O_DIRECTORY)
        case "null": open("/dev/null", O_WRONLY | O_TRUNC)
        case "scratch.create": open("\(scratch)/made", O_RDWR | O_CREAT)
        case "scratch.truncate": open("\(scratch)/made", O_RDWR | O_TRUNC)
        case "scratch.unlink": Int(unlink("\(scratch)/made"))
        case "scratch.mkdir": Int(mkdir("\(scratch)/directory", 0o700))
        case "write": open(file, O_RDWR)
        case "append": open(file, O_WRONLY | O_APPEND)
        case "open.truncate": open(file, O_RDONLY | O_TRUNC)
        case "truncate": Int(truncate(file, 0))
        case "create": open("\(directory)/new", O_RDWR | O_CREAT)
        case "unlink": Int(unlink(file))
        case "mkdir": Int(mkdir("\(directory)/new", 0o700))
        case "rmdir": Int(rmdir("\(directory)/empty"))
        case "rename": Int(rename(file, "\(directory)/renamed"))
        case "rename.in": Int(rename(file, "\(scratch)/renamed"))
        case "link": Int(link(file, "\(directory)/second"))
        case "link.in": Int(link(file, "\(scratch)/second"))
        case "symlink": Int(symlink(file, "\(directory)/symbolic"))
        case "mkfifo": Int(mkfifo("\(directory)/pipe", 0o600))
        case "mknod": Int(mknod("\(scratch)/device", S_IFCHR | 0o600, 0x103))
        default: nil
        }
    }

    private func onAttributes(_ name: String) -> Int? {
        switch name {
        case "chmod": Int(chmod(file, 0o777))
        case "chmod.scratch": Int(chmod(scratch, 0o777))
        case "fchmod": withFile { Int(fchmod($0, 0o777)) }
        case "fchmodat": Int(fchmodat(AT_FDCWD, file, 0o777, 0))
        case "fchmodat2": withPath { call(452, Int(AT_FDCWD), $0, 0o777) }
        case "chown": Int(chown(file, 12, 12))
        case "lchown": Int(lchown(file, 12, 12))
        case "fchown": withFile { Int(fchown($0, 12, 12)) }
        case "fchownat": Int(fchownat(AT_FDCWD, file, 12, 12, 0))
        case "utimes": Int(utimes(file, nil))
        case "utimensat": Int(utimensat(AT_FDCWD, file, nil, 0))
        case "futimens": withFile { Int(futimens($0, nil)) }
        case "setxattr":
            withPath { path in "user.x".withCString { call(SYS_setxattr, path, Int(bitPattern: $0), path, 1) } }
        case "lsetxattr":
            withPath { path in "user.x".withCString { call(SYS_lsetxattr, path, Int(bitPattern: $0), path, 1) } }
        case "fsetxattr":
            withFile { file in
                "user.x".withCString { call(SYS_fsetxattr, Int(file), Int(bitPattern: $0), Int(bitPattern: $0), 1) }
            }
        case "removexattr":
            withPath { path in "user.x".withCString { call(SYS_removexattr, path, Int(bitPattern: $0)) } }
        case "lremovexattr":
            withPath { path in "user.x".withCString { call(SYS_lremovexattr, path, Int(bitPattern: $0)) } }
        case "fremovexattr":
            withFile { file in "user.x".withCString { call(SYS_fremovexattr, Int(file), Int(bitPattern: $0)) } }
        case "setxattrat": call(463)
        case "file_setattr": call(469)
        case "FS_IOC_SETFLAGS":
            withFile { file in
                var flags = 0x40  // no dump
                return call(SYS_ioctl, Int(file), 0x4008_6602, Int(bitPattern: withUnsafePointer(to: &flags) { $0 }))
            }
        default: nil
        }
    }

    private func onTheRest(_ name: String) -> Int? {
        switch name {
        case "tcp": Int(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        case "udp": Int(socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0))
        case "tcp6": Int(socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0))
        case "unix": Int(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
        case "raw": Int(socket(AF_INET, Int32(SOCK_RAW.rawValue), 1))
        case "netlink": Int(socket(AF_NETLINK, Int32(SOCK_RAW.rawValue), 0))
        case "bind": Int(bind(0, nil, 0))
        case "connect": Int(connect(0, nil, 0))
        case "listen": Int(listen(0, 1))
        case "accept": Int(accept(0, nil, nil))
        case "kill": Int(kill(getppid(), 0))
        case "kill.self": Int(kill(getpid(), 0))
        case "tgkill": call(SYS_tgkill, Int(getppid()), Int(getppid()), 0)
        case "tgkill.self": call(SYS_tgkill, Int(getpid()), Int(getpid()), 0)
        case "ptrace": call(SYS_ptrace, 7, Int(getppid()))
        case "process_vm_readv": call(SYS_process_vm_readv, Int(getppid()))
        case "memory": open("/proc/\(getppid())/mem", O_RDONLY)
        case "exec": withPath { call(SYS_execve, $0) }
        case "fork": call(SYS_clone, Int(SIGCHLD))
        case "clone3": call(435)
        case "namespace": call(SYS_clone, 0x0400_0000)
        case "thread": thread()
        case "unshare": call(SYS_unshare, 0x0400_0000)
        case "setns": call(SYS_setns, -1)
        case "mount": call(SYS_mount)
        case "umount": call(SYS_umount2)
        case "move_mount": call(429)
        case "chroot": withPath { _ in "/".withCString { call(SYS_chroot, Int(bitPattern: $0)) } }
        case "io_uring": call(425, 1)
        case "bpf": call(SYS_bpf)
        case "perf": call(SYS_perf_event_open)
        case "open_by_handle_at": call(SYS_open_by_handle_at, Int(AT_FDCWD))
        case "keyctl": call(SYS_keyctl)
        case "module": call(SYS_init_module)
        case "reboot": call(SYS_reboot)
        case "clock": call(SYS_clock_settime)
        case "limits": call(SYS_prlimit64, 0, 4, withUnsafePointer(to: UInt64.max) { Int(bitPattern: $0) })
        case "capabilities": capabilities()
        case "limits.read": call(SYS_prlimit64, 0, 4, 0)
        default: nil
        }
    }

    private func open(_ path: String, _ flags: Int32) -> Int { Int(moult_openat(AT_FDCWD, path, flags, 0o600)) }

    private func call(_ number: some BinaryInteger, _ a: Int = 0, _ b: Int = 0, _ c: Int = 0, _ d: Int = 0) -> Int {
        moult_syscall(Int(number), a, b, c, d)
    }

    private func withPath(_ body: (Int) -> Int) -> Int { file.withCString { body(Int(bitPattern: $0)) } }

    private func withFile(_ body: (Int32) -> Int) -> Int {
        let descriptor = moult_openat(AT_FDCWD, file, O_RDONLY, 0)
        return descriptor < 0 ? -1 : body(descriptor)
    }

    /// Fails like a system call if this process has no capabilities and cannot get any.
    private func capabilities() -> Int {
        var header: [UInt32] = [0x2008_0522, 0]
        var sets: [UInt32] = .init(repeating: 0, count: 6)
        let asked = header.withUnsafeMutableBytes { header in
            sets.withUnsafeMutableBytes { sets in
                call(SYS_capget, Int(bitPattern: header.baseAddress), Int(bitPattern: sets.baseAddress))
            }
        }
        // Only a process of root can drop its bounding set, which limits the capabilities of the programs that it runs.
        let bounding = geteuid() == 0 && (0..<41).contains { call(SYS_prctl, 23, $0) == 1 }
        if asked != 0 || bounding || sets.contains(where: { $0 != 0 }) { return 0 }
        moult_set_errno(EPERM)
        return -1
    }

    private func thread() -> Int {
        var thread = pthread_t()
        let code = pthread_create(&thread, nil, { _ in nil }, nil)
        moult_set_errno(code)
        return code == 0 ? Int(pthread_join(thread, nil)) : -1
    }
}
