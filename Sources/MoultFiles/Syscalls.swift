internal import CLinux
package import MoultBasics
internal import MoultLibc

/// The system calls that open or change files. They are made here, so that a test can make the n-th of them fail.
///
/// Paths below a store's `.moult` are reached without following symlinks: see `StorePath`.
package enum Syscall {
    static func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0, followsLast: Bool = false) throws(Errno)
        -> Int32
    {
        try retrying("open") { () throws(Errno) in try StorePath.open(path, flags, mode, followsLast: followsLast) }
    }
    /// Opens a name in an open directory, without following symlinks.
    static func open(_ name: String, in directory: Int32, _ flags: Int32) throws(Errno) -> Int32 {
        try call("open") { moult_openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, 0) }
    }
    /// Opens a name of any bytes in an open directory, without following symlinks.
    static func open(_ name: [UInt8], in directory: Int32, _ flags: Int32) throws(Errno) -> Int32 {
        try call("open") { moult_openat(directory, cString(name), flags | O_CLOEXEC | O_NOFOLLOW, 0) }
    }
    private static func cString(_ name: [UInt8]) -> [CChar] { name.map { CChar(bitPattern: $0) } + [0] }
    static func unlink(_ name: [UInt8], in directory: Int32, isDirectory: Bool = false) throws(Errno) {
        let name = cString(name)
        _ = try call(isDirectory ? "rmdir" : "unlink") {
            MoultLibc.unlinkat(directory, name, isDirectory ? Int32(AT_REMOVEDIR) : 0)
        }
    }
    /// Creates a file in an open directory; the name must be free.
    static func create(_ name: String, in directory: Int32, mode: mode_t) throws(Errno) -> Int32 {
        try call("open") { moult_openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode) }
    }
    /// Closes a descriptor. The call is not retried, and it is made even if a test makes it fail, because the descriptor is
    /// gone whatever close returns. If SQLite has the file open in this process, the descriptor is kept for the next open.
    static func close(_ fd: Int32) throws(Errno) {
        let result = moult_close_file(fd)
        let code = moult_errno()
        #if DEBUG
            if let error = Faults.injectedError("close") { throw error }
        #endif
        if result < 0 { throw Errno(code) }
    }
    static func read(_ fd: Int32, _ buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        try call("read") { MoultLibc.read(fd, buffer.baseAddress, buffer.count) }
    }
    static func pread(_ fd: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int) throws(Errno) -> Int {
        try call("pread") { MoultLibc.pread(fd, buffer.baseAddress, buffer.count, offset) }
    }
    static func seekData(_ fd: Int32, _ offset: Int) throws(Errno) -> Int {
        try call("lseek") { Int(moult_seek_data(fd, off_t(offset))) }
    }
    static func seekHole(_ fd: Int32, _ offset: Int) throws(Errno) -> Int {
        try call("lseek") { Int(moult_seek_hole(fd, off_t(offset))) }
    }
    static func write(_ fd: Int32, _ buffer: UnsafeRawBufferPointer) throws(Errno) -> Int {
        try call("write") { MoultLibc.write(fd, buffer.baseAddress, buffer.count) }
    }
    static func pwrite(_ fd: Int32, _ buffer: UnsafeRawBufferPointer, _ offset: Int) throws(Errno) -> Int {
        try call("pwrite") { MoultLibc.pwrite(fd, buffer.baseAddress, buffer.count, offset) }
    }
    /// Writes all bytes: at an offset, or at the current position of the file.
    static func writeAll(_ fd: Int32, _ buffer: UnsafeRawBufferPointer, at offset: Int? = nil) throws(Errno) {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeRawBufferPointer(rebasing: buffer[done...])
            let count = if let offset { try pwrite(fd, rest, offset + done) } else { try write(fd, rest) }
            done += count
        }
    }
    static func fsync(_ fd: Int32) throws(Errno) { _ = try call("fsync") { MoultLibc.fsync(fd) } }
    static func startWriteback(_ fd: Int32, _ offset: Int, _ length: Int) throws(Errno) {
        _ = try call("sync_file_range") { moult_start_writeback(fd, off64_t(offset), off64_t(length)) }
    }
    static func ftruncate(_ fd: Int32, _ size: Int) throws(Errno) {
        _ = try call("ftruncate") { MoultLibc.ftruncate(fd, size) }
    }
    static func fstat(_ fd: Int32) throws(Errno) -> moult_stat {
        var facts = moult_stat()
        _ = try call("fstat") { moult_fstat_call(fd, &facts) }
        return facts
    }
    static func lstat(_ path: String) throws(Errno) -> moult_stat {
        var facts = moult_stat()
        try at("lstat", path) { Int(fstatat($0, $1, &facts, AT_SYMLINK_NOFOLLOW)) }
        return facts
    }
    static func stat(_ path: String) throws(Errno) -> moult_stat {
        var facts = moult_stat()
        try at("stat", path) { Int(fstatat($0, $1, &facts, 0)) }
        return facts
    }
    static func birth(_ path: String) throws(Errno) -> FileFacts.Moment? {
        var (seconds, nanoseconds) = (Int64(0), UInt32(0))
        let unknown = try call("statx") { moult_birth(path, &seconds, &nanoseconds) } == 1
        return unknown ? nil : FileFacts.Moment(seconds: Int(seconds), nanoseconds: Int(nanoseconds))
    }
    static func statvfs(_ path: String) throws(Errno) -> moult_statvfs {
        var facts = moult_statvfs()
        _ = try call("statvfs") { moult_statvfs_call(path, &facts) }
        return facts
    }
    static func readlink(_ path: String, _ buffer: UnsafeMutableBufferPointer<CChar>) throws(Errno) -> Int {
        guard let base = buffer.baseAddress else { throw Errno(EINVAL) }
        return try at("readlink", path) { MoultLibc.readlinkat($0, $1, base, buffer.count) }
    }
    /// Returns the metadata of the file that a name of any bytes in an open directory leads to.
    static func stat(_ name: [UInt8], in directory: Int32) throws(Errno) -> moult_stat {
        var facts = moult_stat()
        _ = try call("stat") { fstatat(directory, cString(name), &facts, 0) }
        return facts
    }
    /// Returns the metadata of a name in an open directory, without following symlinks.
    static func lstat(_ name: String, in directory: Int32) throws(Errno) -> moult_stat {
        var facts = moult_stat()
        _ = try call("lstat") { fstatat(directory, name, &facts, AT_SYMLINK_NOFOLLOW) }
        return facts
    }
    /// Returns the target of a symlink in an open directory.
    static func readlink(_ name: String, in directory: Int32) throws(Errno) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = try call("readlink") { MoultLibc.readlinkat(directory, name, &buffer, buffer.count) }
        return try text(buffer[..<count].map { UInt8(bitPattern: $0) })
    }
    /// Returns a path that the kernel has returned. Throws if it is not valid UTF-8: a repaired path would be a different one.
    static func text(_ bytes: some Collection<UInt8>) throws(Errno) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw Errno(EILSEQ) }
        return text
    }
    static func symlink(_ target: String, _ path: String) throws(Errno) {
        try at("symlink", path) { Int(MoultLibc.symlinkat(target, $0, $1)) }
    }
    static func link(_ old: String, _ new: String) throws(Errno) {
        try at("link", old, new) { Int(MoultLibc.linkat($0, $1, $2, $3, 0)) }
    }
    static func unlink(_ path: String) throws(Errno) { try at("unlink", path) { Int(MoultLibc.unlinkat($0, $1, 0)) } }
    static func rmdir(_ path: String) throws(Errno) {
        try at("rmdir", path) { Int(MoultLibc.unlinkat($0, $1, Int32(AT_REMOVEDIR))) }
    }
    static func mkdir(_ path: String, _ mode: mode_t) throws(Errno) {
        try at("mkdir", path) { Int(MoultLibc.mkdirat($0, $1, mode)) }
    }
    static func chmod(_ path: String, _ mode: mode_t) throws(Errno) {
        guard try StorePath(path) != nil else {
            try at("chmod", path) { Int(MoultLibc.fchmodat($0, $1, mode, 0)) }
            return
        }
        // `fchmodat` would follow a symlink.
        let file = try StorePath.open(path, SystemFeatures.pathOnly | O_NOFOLLOW, 0, followsLast: false)
        defer { _ = MoultLibc.close(file) }
        if FileFacts(try fstat(file)).kind == .link { throw .loop }
        do throws(Errno) {
            _ = try call("chmod") { MoultLibc.chmod("\(SystemFeatures.proc)/self/fd/\(file)", mode) }
        } catch {
            guard error == .noEntry else { throw error }
            // Without /proc, the mode is set through a descriptor, which requires permission to read the file.
            let file = try StorePath.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, followsLast: false)
            defer { _ = MoultLibc.close(file) }
            try fchmod(file, mode)
        }
    }
    static func fchmod(_ fd: Int32, _ mode: mode_t) throws(Errno) {
        _ = try call("fchmod") { MoultLibc.fchmod(fd, mode) }
    }
    static func chown(_ path: String, _ owner: uid_t, _ group: gid_t) throws(Errno) {
        _ = try call("chown") { MoultLibc.chown(path, owner, group) }
    }
    static func fchown(_ fd: Int32, _ owner: uid_t, _ group: gid_t) throws(Errno) {
        _ = try call("fchown") { MoultLibc.fchown(fd, owner, group) }
    }
    static func listAttributes(_ path: String, _ buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        try call("listxattr") { moult_listxattr(path, buffer.baseAddress, buffer.count) }
    }
    static func getAttribute(_ path: String, _ name: String, _ buffer: UnsafeMutableRawBufferPointer) throws(Errno)
        -> Int
    {
        try call("getxattr") { moult_getxattr(path, name, buffer.baseAddress, buffer.count) }
    }
    static func setAttribute(_ path: String, _ name: String, _ value: [UInt8]) throws(Errno) {
        _ = try call("setxattr") { moult_setxattr(path, name, value, value.count) }
    }
    static func removeAttribute(_ path: String, _ name: String) throws(Errno) {
        _ = try call("removexattr") { moult_removexattr(path, name) }
    }
    /// Returns whether a path is the root of a mount; nil if the kernel does not report it (before Linux 5.8).
    static func isMountRoot(_ path: String) throws(Errno) -> Bool? {
        switch try call("statx", { moult_is_mount_root(path) }) {
        case 0: false
        case 1: true
        default: nil
        }
    }
    static func groups() throws(Errno) -> [gid_t] {
        let count = try call("getgroups") { getgroups(0, nil) }
        var groups = [gid_t](repeating: 0, count: Int(count))
        let filled = try call("getgroups") { getgroups(count, &groups) }
        return Array(groups.prefix(Int(filled)))
    }
    static func rename(_ old: String, _ new: String, _ flags: UInt32 = 0) throws(Errno) {
        try at("rename", old, new) { Int(moult_renameat2($0, $1, $2, $3, flags)) }
    }
    static func flock(_ fd: Int32, _ operation: Int32) throws(Errno) {
        _ = try call("flock") { moult_flock_call(fd, operation) }
    }
    static func lockForReading(_ fd: Int32) throws(Errno) {
        _ = try call("fcntl(F_OFD_SETLK)") { moult_lock_for_reading(fd) }
    }
    static func isLocked(_ fd: Int32) throws(Errno) -> Bool {
        try call("fcntl(F_OFD_GETLK)") { moult_is_locked(fd) } == 1
    }
    static func setLease(_ fd: Int32, _ kind: Int32) throws(Errno) {
        // A process that opens the file breaks the lease, and the kernel sends the holder a signal: by default SIGIO, which
        // kills a process that does not handle it. SIGURG is ignored by default; the holder queries the state of the lease when
        // it matters.
        _ = try call("fcntl(F_SETSIG)") { moult_fcntl_int(fd, MOULT_F_SETSIG, SIGURG) }
        _ = try call("fcntl(F_SETLEASE)") { moult_fcntl_int(fd, MOULT_F_SETLEASE, kind) }
    }
    static func getLease(_ fd: Int32) throws(Errno) -> Int32 {
        try call("fcntl(F_GETLEASE)") { moult_fcntl_int(fd, MOULT_F_GETLEASE, 0) }
    }
    static func clone(_ to: Int32, _ from: Int32) throws(Errno) {
        _ = try call("ioctl(FICLONE)") { moult_clone(to, from) }
    }
    /// Maps part of a file for reading: at `address`, where it replaces an existing mapping, or at any free address if that is
    /// nil.
    static func map(_ fd: Int32, at address: UnsafeMutableRawPointer?, _ offset: Int, _ size: Int) throws(Errno)
        -> UnsafeMutableRawPointer
    {
        let flags = MAP_PRIVATE | (address == nil ? 0 : MAP_FIXED) | (fd < 0 ? MAP_ANONYMOUS : 0)
        return try map(fd, at: address, offset, size, PROT_READ, flags)
    }
    private static func map(
        _ fd: Int32, at address: UnsafeMutableRawPointer?, _ offset: Int, _ size: Int, _ access: Int32, _ flags: Int32
    ) throws(Errno) -> UnsafeMutableRawPointer {
        // The result of a failure is -1; valid addresses are never negative.
        let place = try call("mmap") { Int(bitPattern: MoultLibc.mmap(address, size, access, flags, fd, offset)) }
        guard let pointer = UnsafeMutableRawPointer(bitPattern: place) else { throw .invalid }
        return pointer
    }
    static func mapShared(_ fd: Int32, _ size: Int) throws(Errno) -> UnsafeMutableRawPointer {
        try map(fd, at: nil, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED)
    }
    static func unmap(_ address: UnsafeMutableRawPointer, _ size: Int) throws(Errno) {
        _ = try call("munmap") { MoultLibc.munmap(address, size) }
    }
    static func access(_ path: String, _ mode: Int32) throws(Errno) {
        try at("access", path) { Int(faccessat($0, $1, mode, 0)) }
    }

    // MARK: calling

    /// Makes a system call with a path.
    @discardableResult
    private static func at(
        _ name: StaticString, _ path: String, _ body: (Int32, UnsafePointer<CChar>) -> Int
    ) throws(Errno) -> Int {
        try retrying(name) { () throws(Errno) in
            try StorePath.reach(path) { directory, last throws(Errno) in try answer(body(directory, last)) }
        }
    }

    /// Makes a system call with two paths.
    private static func at(
        _ name: StaticString, _ old: String, _ new: String,
        _ body: (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>) -> Int
    ) throws(Errno) {
        try retrying(name) { () throws(Errno) in
            _ = try StorePath.reach(old) { from, old throws(Errno) in
                try StorePath.reach(new) { to, new throws(Errno) in try answer(body(from, old, to, new)) }
            }
        }
    }

    /// Makes a system call.
    private static func call<Result: BinaryInteger>(
        _ name: StaticString, _ body: () -> Result
    ) throws(Errno) -> Result {
        try retrying(name) { () throws(Errno) in try answer(body()) }
    }

    static func answer<Result: BinaryInteger>(_ result: Result) throws(Errno) -> Result {
        if result < 0 { throw Errno(moult_errno()) }
        return result
    }

    /// Retries a call that a signal interrupted.
    private static func retrying<Result>(_ name: StaticString, _ body: () throws(Errno) -> Result) throws(Errno)
        -> Result
    {
        #if DEBUG
            if let error = Faults.injectedError(name) { throw error }
        #endif
        while true {
            do { return try body() } catch { if error != .interrupted { throw error } }
        }
    }
}

/// The errno of a failed call, with the system's message.
package struct Errno: Error, Equatable, Sendable, CustomStringConvertible {
    package let code: Int32
    package init(_ code: Int32) { self.code = code }

    func isOne(of codes: Int32...) -> Bool { codes.contains(code) }

    package var description: String { String(cString: strerror(code)) }

    package static let noEntry = Errno(ENOENT)
    package static let notADirectory = Errno(ENOTDIR)
    package static let exists = Errno(EEXIST)
    package static let wouldBlock = Errno(EWOULDBLOCK)
    package static let denied = Errno(EACCES)
    package static let noSpace = Errno(ENOSPC)
    package static let tooLarge = Errno(EFBIG)
    package static let notEmpty = Errno(ENOTEMPTY)
    package static let invalid = Errno(EINVAL)
    package static let readOnly = Errno(EROFS)
    package static let loop = Errno(ELOOP)
    static let interrupted = Errno(EINTR)
    static let noProcess = Errno(ESRCH)
    static let notPermitted = Errno(EPERM)
    static let unknownCall = Errno(ENOSYS)
}

extension Errno {
    /// Returns an error with the failed operation and path, the cause, and the remedy. To find the remedy, the function checks
    /// which of the needed permissions is missing.
    package func error(_ what: String, _ needs: Permission...) -> MoultError {
        if self == .loop, let link = needs.lazy.compactMap({ StorePath.plantedLink(in: $0.path) }).first {
            return MoultError(
                .system, what: what,
                why: "\(link) is a symbolic link, and moult does not follow links in its own directory",
                now: "Remove the link: \(run: ["rm", link])", cause: self)
        }
        // The system's message does not name UTF-8.
        let why = self == Errno(EILSEQ) ? "a name, or the target of a link, is not valid UTF-8" : description
        return MoultError(.system, what: what, why: why, now: remedy(needs), cause: self)
    }

    /// The advice if a file cannot grow even though the disk has free space.
    package static let fileSizeAdvice: Advice =
        "A file cannot grow beyond the limit of this shell, or of the file system. To raise the limit of the shell: \(run: ["ulimit", "-f", "unlimited"])"

    private func remedy(_ needs: [Permission]) -> Advice? {
        switch self {
        case .denied:
            Permission.umaskAdvice ?? needs.compactMap(\.advice).first
                ?? "Check the owner and mode of the file and of the directories above it."
        case .noSpace, Errno(EDQUOT): "Free some space on that file system."
        case .tooLarge: Self.fileSizeAdvice
        case Errno(EXDEV):
            "A directory cannot be moved out of a lower layer of an overlay file system. Copy the store to a volume, and use the copy."
        case .readOnly: "The file system is mounted read-only; mount it for writing."
        default: nil
        }
    }
}

extension SystemFeatures {
    /// Returns the error for an operation that needs a Linux feature which the portable build does not use.
    package static func unavailable(_ what: String, because why: String) -> MoultError {
        MoultError(
            .portableBuild, .refused, what: what, why: "this build of moult \(why)",
            now: "Use a build for Linux.")
    }

    static func requireExchange(_ one: String, _ other: String) throws {
        if exchangesNames { return }
        throw unavailable("cannot exchange \(one) and \(other)", because: "cannot exchange two files in one step")
    }
}
