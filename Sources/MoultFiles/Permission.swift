internal import CLinux
package import MoultBasics
internal import MoultLibc

/// An intended access to a path. If the system denies the access, this type finds the file or directory whose mode is the
/// cause.
package enum Permission {
    case read(String)
    case write(String)
    /// To add, rename or remove a name, which requires write permission for its directory.
    case name(String)

    /// The command that grants the access; nil if the file or directory that denies it belongs to another user, or if modes are
    /// not the cause.
    package var command: [String]? {
        guard let obstacle, let owner = Self.owner(of: obstacle.path), owner == geteuid() else { return nil }
        return ["chmod", obstacle.isDirectory ? "u+rwx" : mode, obstacle.path]
    }

    /// The advice for the user; nil if modes are not the cause.
    package var advice: Advice? {
        if let command { return "Allow it: \(run: command)" }
        guard let obstacle, let owner = Self.owner(of: obstacle.path) else { return nil }
        // A path with `.` or `..` depends on the working directory, and `.` before the full stop would look like `..`.
        let isRelative = obstacle.path.pathParts().contains { $0 == "." || $0 == ".." }
        // If the path cannot be resolved, the advice has it as it is.
        let place = isRelative ? (try? Files.resolved(obstacle.path)) ?? obstacle.path : obstacle.path
        let advice = "Run the command as user \(Files.userName(owner)), who owns \(place)"
        guard !obstacle.isDirectory, let mode = Self.facts(obstacle.path)?.mode else { return "\(advice)." }
        if case .read = self {
            return
                "\(advice) (mode \(String(mode & 0o7777, radix: 8))), or ask that user for the permission to read it."
        }
        // Unlike sudo, chown does not accept `#` before a number.
        let user = String(Files.userName(geteuid()).drop { $0 == "#" })
        return "\(advice) (mode \(String(mode & 0o7777, radix: 8))), or make this user the owner of the file: "
            + "\(run: ["sudo", "chown", user, place])"
    }

    /// Whether modes keep this user from reading an existing file.
    package var deniesReading: Bool {
        switch self {
        case .read(let path), .write(let path), .name(let path):
            Permission.read(path).obstacle != nil && !Self.mayAccess(path, R_OK)
        }
    }

    /// Throws the system's error, with advice, if modes deny this user the access.
    package func require(_ what: String) throws { if advice != nil { throw Errno.denied.error(what, self) } }

    /// Throws an error with advice unless this user may read the file. With `ifThere`, a missing file is accepted.
    package func requireReadable(ifThere: Bool = false) throws {
        do { try Syscall.access(path, R_OK) } catch {
            if ifThere && error == .noEntry { return }
            throw Errno.denied.error("cannot read \(path)", self)
        }
    }

    /// Like `require`, but the error names the user and the path, and counts as a refusal.
    package func check(_ what: String) throws {
        guard let advice else { return }
        throw MoultError(
            .system, .refused, what: what, why: "user \(Files.userName(geteuid())) may not write to \(path)",
            now: advice)
    }

    /// The permissions that new files of this process do not get; nil if the system does not show them.
    package static var umask: UInt32? {
        // Reading the umask with a system call would change it briefly.
        let lines = Files.bytes(ofSystemFile: "\(SystemFeatures.proc)/self/status").split(separator: UInt8(ascii: "\n"))
        let line = lines.first { $0.starts(with: "Umask:".utf8) }.flatMap { OutsideText.valid($0) }
        return line?.split(separator: "\t").last.flatMap { UInt32($0, radix: 8) }
    }

    /// The advice if this process cannot access files that it creates itself; nil if it can.
    static var umaskAdvice: Advice? {
        guard let mask = umask, mask & 0o700 != 0 else { return nil }
        return
            "The umask of this shell, 0\(String(mask, radix: 8)), removes this user's own permissions from files that moult creates. "
            + "To change it: \(run: ["umask", "022"])"
    }

    var path: String {
        switch self {
        case .read(let path), .write(let path), .name(let path): path
        }
    }

    private var mode: String { if case .read = self { "u+r" } else { "u+rw" } }

    /// The first component of the path that denies access.
    private var obstacle: (path: String, isDirectory: Bool)? {
        // If root is denied access, or the path is in /proc, modes are not the cause.
        if geteuid() == 0 || path.isBelow(SystemFeatures.proc) { return nil }
        var directories: [String] = []
        var above = path
        while above != "/", above != "." {
            above = Files.directory(of: above)
            directories.insert(above, at: 0)
        }
        if let closed = directories.first(where: { !Self.mayAccess($0, X_OK) }) { return (closed, true) }
        switch self {
        case .read: if Self.mayAccess(path, R_OK) { return nil }
        case .write where Self.facts(path) != nil: if Self.mayAccess(path, R_OK | W_OK) { return nil }
        case .write, .name: return directories.last.flatMap { Self.mayAccess($0, W_OK) ? nil : ($0, true) }
        }
        return Self.facts(path).map { (path, $0.kind == .directory) }
    }

    // A failure here affects only the advice: the error is reported in any case.
    private static func mayAccess(_ path: String, _ mode: Int32) -> Bool { (try? Syscall.access(path, mode)) != nil }
    private static func facts(_ path: String) -> FileFacts? { (try? Syscall.stat(path)).map { FileFacts($0) } }

    private static func owner(of path: String) -> UInt32? { facts(path)?.owner }
}

extension Files {
    /// Returns the name of a user; `#` and the ID if `/etc/passwd` has no entry for it.
    package static func userName(_ id: UInt32) -> String {
        for fields in table("/etc/passwd") where fields.count > 2 && fields[2].elementsEqual("\(id)".utf8) {
            if let name = OutsideText.valid(fields[0]) { return name }
        }
        return id == 0 ? "root" : "#\(id)"
    }

    /// Returns whether this user is the only member of a group, according to `/etc/passwd` and `/etc/group`. A group that they do
    /// not list, as with the numeric IDs of a container, may have any members.
    package static func isPrivateGroup(_ group: UInt32) -> Bool {
        let (user, number) = (Array("\(geteuid())".utf8)[...], Array("\(group)".utf8)[...])
        let users = table("/etc/passwd").filter { $0.count > 3 }
        let names = Set(users.filter { $0[2] == user }.map { $0[0] })
        // Several names may have the same number.
        let entries = table("/etc/group").filter { $0.count > 3 && $0[2] == number }
        return !entries.isEmpty && users.allSatisfy { $0[3] != number || names.contains($0[0]) }
            && entries.allSatisfy {
                names.contains($0[0]) && $0[3].split(separator: UInt8(ascii: ",")).allSatisfy(names.contains)
            }
    }

    /// Returns the fields of the lines of a system file as bytes: names that are not valid UTF-8 differ from each other.
    private static func table(_ path: String) -> [[ArraySlice<UInt8>]] {
        bytes(ofSystemFile: path).split(separator: UInt8(ascii: "\n")).map {
            $0.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        }
    }

    /// Returns whether a file has an access control list, which can allow further users to write to it.
    package static func hasAccessList(_ path: String) throws -> Bool {
        guard SystemFeatures.hasAttributes else { return false }
        return try withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 1) { buffer in
            do throws(Errno) {
                _ = try Syscall.getAttribute(path, "system.posix_acl_access", buffer)
                return true
            } catch {
                if error.isOne(of: ENODATA, EOPNOTSUPP) { return false }
                throw error.error("cannot read the access control list of \(path)")
            }
        }
    }

    /// Returns the content of a system file, at most `limit` bytes; empty if it cannot be read, as in a confined process, or if the
    /// process has ended. The error of `read` would need such a file for its own message, and a server may have thousands of
    /// processes, so this makes no other system calls.
    static func bytes(ofSystemFile path: String, limit: Int = 1 << 24) -> [UInt8] {
        let file = moult_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0)
        guard file >= 0 else { return [] }
        defer { _ = MoultLibc.close(file) }
        var bytes: [UInt8] = []
        while bytes.count < limit {
            let block = [UInt8](unsafeUninitializedCapacity: 1 << 12) { buffer, count in
                count = max(0, MoultLibc.read(file, buffer.baseAddress, buffer.count))
            }
            bytes += block
            // The kernel fills the buffer if the file is longer.
            if block.count < 1 << 12 { break }
        }
        return bytes
    }

    /// Returns the owner of the file if the kernel lets no other user, not even root, open it with O_CREAT, because it is in a
    /// sticky directory that other users may write to (`fs.protected_regular`). SQLite opens `-wal` and `-shm` with O_CREAT.
    package static func protectedOwner(_ path: String) throws -> UInt32? {
        guard let file = try factsThroughLinks(path), file.kind == .file, file.owner != geteuid(),
            let directory = try factsThroughLinks(directory(of: path)), directory.mode & 0o1000 != 0,
            directory.owner != file.owner, directory.mode & 0o022 != 0
        else { return nil }
        let level = String(
            decoding: try read("\(SystemFeatures.proc)/sys/fs/protected_regular", limit: 64) ?? [], as: UTF8.self)
        return (Int(level.trimmed) ?? 0) >= (directory.mode & 0o002 != 0 ? 1 : 2) ? file.owner : nil
    }
}
