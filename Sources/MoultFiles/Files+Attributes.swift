internal import MoultBasics
internal import MoultLibc

/// Owner, group, mode, ACL and other extended attributes of a file, which determine who may access it.
extension Files {
    /// Gives a regular file the owner, group, mode, POSIX ACL and all other extended attributes of another one.
    ///
    /// The signatures of the integrity subsystem (`security.ima`, `security.evm`) are left out, because they belong to the
    /// content. Attributes that only `new` has, such as an ACL inherited from its directory, are removed. Neither file is
    /// opened, because closing a file would drop the locks that SQLite holds on it in this process.
    package static func copyAttributes(from old: String, to new: String) throws {
        let source = try Descriptor(old, .name)
        let target = try Descriptor(new, .name)
        try target.copyAttributes(from: source)
        try source.close()
        try target.close()
    }

    /// Returns why this user cannot set the owner and group in `facts` on another file; nil if this user can.
    package static func reasonAgainstCopyingOwner(of facts: FileFacts) throws -> String? {
        let groups: [gid_t]
        do { groups = try Syscall.groups() } catch { throw error.error("cannot read the groups of this process") }
        return reasonAgainstSetting(owner: facts.owner, group: facts.group, as: geteuid(), in: groups + [getegid()])
    }

    static func reasonAgainstSetting(owner: UInt32, group: UInt32, as user: UInt32, in groups: [UInt32]) -> String? {
        if user == 0 { return nil }
        if owner != user { return "it belongs to user \(owner), and only root can give files to other users" }
        if groups.contains(group) { return nil }
        return "it belongs to group \(group), and user \(user) is not a member of that group"
    }

    /// Returns why this user cannot set the owner and group of the file at a path on another file; nil if this user can.
    package static func reasonAgainstCopyingOwner(of path: String) throws -> String? {
        guard let facts = try facts(path) else { throw Errno.noEntry.error("cannot access \(path)") }
        return try reasonAgainstCopyingOwner(of: facts)
    }

    /// Returns whether the path is a mount point, which can be neither renamed nor exchanged, even within one file system (a
    /// bind mount of a single file). Does not follow symlinks; returns false if nothing exists at the path.
    package static func isMountPoint(_ path: String) throws -> Bool {
        guard let facts = try facts(path) else { return false }
        if facts.kind == .link { return false }
        do {
            if let isRoot = try Syscall.isMountRoot(path) { return isRoot }
        } catch {
            // The kernel may lack the call, or a sandbox may forbid it.
            guard error.isOne(of: ENOSYS, EPERM, EINVAL) else { throw error.error("cannot access \(path)") }
        }
        return try isMountPointByTable(path, facts)
    }

    /// Like `isMountPoint`, but reads the mount table. Without `/proc`, compares the device with that of the parent directory.
    static func isMountPointByTable(_ path: String, _ facts: FileFacts) throws -> Bool {
        if let mount = try MountedFileSystem.of(path), let resolved = resolvedIfFound(path) {
            return mount.mountPoint == resolved
        }
        return try factsThroughLinks(directory(of: path))?.device != facts.device
    }
}

extension Descriptor {
    /// Gives this file the owner, group, mode, ACL and other extended attributes of another one; see `Files.copyAttributes`.
    package borrowing func copyAttributes(from other: borrowing Descriptor) throws {
        let (wanted, present) = (try other.facts(), try facts())
        for (facts, path) in [(wanted, other.path), (present, path)] where facts.kind != .file {
            throw MoultError(.system, what: "cannot copy the attributes of \(path)", why: "it is not a regular file")
        }
        guard SystemFeatures.hasAttributes else { return try copyOwnerAndMode(wanted, present, of: other) }
        let (file, path) = (try link, self.path)
        // Owner first, because changing the owner clears set-id bits and capabilities.
        if wanted.owner != present.owner || wanted.group != present.group {
            do { try Syscall.chown(file, wanted.owner, wanted.group) } catch {
                throw Self.ownershipError(path, to: wanted, of: other.path, error)
            }
        }
        try copyExtendedAttributes(from: other)
        // Mode last, because an ACL sets the group's bits.
        do { try Syscall.chmod(file, wanted.mode) } catch { throw error.error("cannot set the mode of \(path)") }
        let result = try facts()
        if (result.owner, result.group, result.mode) == (wanted.owner, wanted.group, wanted.mode) { return }
        // A file system without owners accepts the calls, and the kernel drops set-id bits without an error.
        throw MoultError(
            .system, what: "cannot give \(path) the owner and mode of \(other.path)",
            why: "the file system accepted them but did not store them")
    }

    /// Returns the error for an owner or group that cannot be set: only root can change a file's owner, and other users can
    /// only set a group that they belong to.
    private static func ownershipError(_ path: String, to wanted: FileFacts, of other: String, _ error: Errno)
        -> MoultError
    {
        var failure = error.error(
            "cannot set the owner of \(path) to user \(wanted.owner) and group \(wanted.group), those of \(other)")
        if error == .notPermitted {
            failure.now =
                wanted.owner == geteuid()
                ? "Run the command as root, or change the group: \(run: ["chgrp", "\(getegid())", other])"
                : "Run the command as root, or as user \(Files.userName(wanted.owner))."
        }
        return failure
    }

    /// Copies only owner, group and mode, in a build that does not support extended attributes.
    private borrowing func copyOwnerAndMode(
        _ wanted: FileFacts, _ present: FileFacts, of other: borrowing Descriptor
    ) throws {
        let (file, path) = (number, self.path)
        if wanted.owner != present.owner || wanted.group != present.group {
            do { try Syscall.fchown(file, wanted.owner, wanted.group) } catch {
                throw Self.ownershipError(path, to: wanted, of: other.path, error)
            }
        }
        try setMode(wanted.mode)
    }

    private borrowing func copyExtendedAttributes(from other: borrowing Descriptor) throws {
        let (wanted, present) = (try other.extendedAttributes(), try extendedAttributes())
        let (file, path) = (try link, self.path)
        for name in present.keys.sorted() where wanted[name] == nil {
            // A security module may give every file a label, which cannot be removed.
            if name.hasPrefix("security."), name != "security.capability" { continue }
            do { try Syscall.removeAttribute(file, name) } catch {
                throw error.error("cannot remove the attribute \(name) of \(path)")
            }
        }
        for (name, value) in wanted.sorted(by: { $0.key < $1.key }) where present[name] != value {
            do { try Syscall.setAttribute(file, name, value) } catch {
                throw error.error("cannot set the attribute \(name) of \(path)")
            }
        }
    }

    /// Returns all extended attributes except the signatures of the integrity subsystem.
    package borrowing func extendedAttributes() throws -> [String: [UInt8]] {
        guard SystemFeatures.hasAttributes else { return [:] }
        let (file, path) = (try link, self.path)
        // 64 KiB is the kernel's limit for the list of names and for a value.
        return try withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 1) { buffer in
            let count: Int
            do throws(Errno) { count = try Syscall.listAttributes(file, buffer) } catch {
                if error == Errno(EOPNOTSUPP) { return [:] }
                throw error.error("cannot read the attributes of \(path)")
            }
            let names = buffer[..<count].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            var attributes: [String: [UInt8]] = [:]
            for name in names where name != "security.ima" && name != "security.evm" {
                do throws(Errno) {
                    attributes[name] = Array(buffer[..<(try Syscall.getAttribute(file, name, buffer))])
                } catch {
                    throw error.error("cannot read the attribute \(name) of \(path)")
                }
            }
            return attributes
        }
    }

    /// A path that leads to the open file itself, even if its name now belongs to another file.
    private var link: String {
        get throws {
            let link = "\(SystemFeatures.proc)/self/fd/\(number)"
            if try Files.facts(link) != nil { return link }
            throw MoultError(
                .system, what: "cannot read the attributes of \(path)", why: "/proc is not mounted",
                now: "Mount it with: \(run: ["mount", "-t", "proc", "proc", "/proc"])")
        }
    }
}
