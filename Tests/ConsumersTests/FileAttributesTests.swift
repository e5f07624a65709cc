import CLinux
import MoultBasics
import MoultLibc
import TestSupport
import Testing

@testable import MoultFiles

/// A copy of a file keeps the permissions and attributes of the file.
struct FileAttributesTests {
    private let scratch: Scratch
    private var old: String { scratch.path("old.db") }
    private var new: String { scratch.path("new.db") }

    init() throws {
        scratch = try Scratch()
        try Files.writeNew([1], to: old, mode: 0o640)
        try Files.writeNew([2], to: new, mode: 0o600)
    }

    private func set(_ name: String, _ value: [UInt8], on path: String) throws {
        guard moult_setxattr(path, name, value, value.count) == 0 else {
            throw Errno(moult_errno()).error("cannot set")
        }
    }

    private func attributes(_ path: String) throws -> [String: [UInt8]] {
        let file = try Descriptor(path, .name)
        let attributes = try file.extendedAttributes().filter { !$0.key.hasPrefix("security.") }
        try file.close()
        return attributes
    }

    /// Returns an ACL in the format that `setfacl -m u:USER:rw` writes: version 2, then the tag, permissions and ID of each
    /// entry.
    private func list(user: UInt32) -> [UInt8] {
        var bytes: [UInt8] = [2, 0, 0, 0]
        let entries: [(UInt16, UInt16, UInt32)] = [
            (1, 6, .max), (2, 6, user), (4, 4, .max), (16, 6, .max), (32, 0, .max),
        ]
        for (tag, permissions, id) in entries {
            for number in [tag, permissions] { bytes += [UInt8(number & 255), UInt8(number >> 8)] }
            bytes += (0..<4).map { UInt8(truncatingIfNeeded: id >> (8 * $0)) }
        }
        return bytes
    }

    @Test(.enabled(if: geteuid() == 0)) func `owner, group and mode are copied`() throws {
        #expect(chown(old, 65534, 65533) == 0)
        #expect(chmod(old, 0o2660) == 0)
        try Files.copyAttributes(from: old, to: new)
        let facts = try #require(try Files.facts(new))
        #expect([facts.owner, facts.group, facts.mode] == [65534, 65533, 0o2660])
        #expect(facts.links == 1)
        #expect(try Files.read(new, limit: 9) == [2])
    }

    @Test func `an ACL and user attributes are copied`() throws {
        try set("system.posix_acl_access", list(user: 1234), on: old)
        try set("user.origin", Array("a\u{0}b".utf8), on: old)
        try set("user.empty", [], on: old)
        let wanted = try attributes(old)
        #expect(wanted.count == 3)
        try Files.copyAttributes(from: old, to: new)
        #expect(try attributes(new) == wanted)
        #expect(try Files.facts(new)?.mode == Files.facts(old)?.mode)
    }

    @Test func `an ACL that only the target has is removed`() throws {
        try set("system.posix_acl_access", list(user: 1234), on: new)
        try set("user.stray", [7], on: new)
        try Files.copyAttributes(from: old, to: new)
        #expect(try attributes(new) == [:])
        #expect(try Files.facts(new)?.mode == 0o640)
    }

    @Test func `attributes are copied only between regular files`() throws {
        try Files.symlink(to: old, at: scratch.path("link"))
        #expect {
            try Files.copyAttributes(from: old, to: scratch.path("link"))
        } throws: {
            "\($0)".contains("cannot copy the attributes of \(scratch.path("link")): it is not a regular file")
        }
        #expect(throws: MoultError.self) { try Files.copyAttributes(from: scratch.path, to: new) }
        #expect(throws: MoultError.self) { try Files.copyAttributes(from: scratch.path("missing"), to: new) }
    }

    #if DEBUG
        @Test func `a failure of any system call is reported`() throws {
            try set("user.origin", [1], on: old)
            try set("user.stray", [1], on: new)
            var reported = 0
            for number in 1...100 {
                let faults = Faults(failAt: number, code: EIO)
                do {
                    try Faults.$current.withValue(faults) { try Files.copyAttributes(from: old, to: new) }
                    if faults.failedCall == nil { break }
                    // The only exception is an error from `close` on a file that was not written to.
                    Issue.record("\(faults.failedCall ?? "") failed without an error")
                } catch { reported += 1 }
                try Files.remove(new)
                try Files.writeNew([2], to: new)
                try set("user.stray", [1], on: new)
            }
            #expect(reported >= 12)
        }
    #endif

    @Test func `copying an owner or group that the user may not set is refused`() throws {
        func reason(_ owner: UInt32, _ group: UInt32, as user: UInt32 = 1000) -> String? {
            Files.reasonAgainstSetting(owner: owner, group: group, as: user, in: [100, 27])
        }
        #expect(reason(1000, 100) == nil)
        #expect(reason(1000, 27) == nil)
        #expect(reason(1, 2, as: 0) == nil)
        #expect(reason(1000, 5) == "it belongs to group 5, and user 1000 is not a member of that group")
        #expect(reason(33, 100) == "it belongs to user 33, and only root can give files to other users")
        #expect(try Files.reasonAgainstCopyingOwner(of: old) == nil)
        #expect(throws: MoultError.self) { try Files.reasonAgainstCopyingOwner(of: scratch.path("missing")) }
    }

    @Test func `a plain file and a directory are not mount points`() throws {
        #expect(try !Files.isMountPoint(old))
        #expect(try !Files.isMountPoint(scratch.path))
        #expect(try !Files.isMountPoint(scratch.path("missing")))
        #expect(try Files.isMountPoint("/proc"))
    }

    @Test(.enabled(if: geteuid() == 0)) func `a file that is bind-mounted is a mount point`() throws {
        let mounted = try Shell.run(["mount", "--bind", old, new])
        if mounted.status != 0 { try Test.cancel("this container may not mount: \(mounted.errors)") }
        defer { _ = try? Shell.run(["umount", new]) }
        let facts = try #require(try Files.facts(new))
        #expect(facts.device == (try Files.facts(scratch.path)?.device))
        #expect(try Files.isMountPoint(new))
        #expect(try Files.isMountPointByTable(new, facts))
        #expect(try !Files.isMountPoint(old))
        #expect(try !Files.isMountPointByTable(old, facts))
    }

    #if DEBUG
        @Test func `without statx, the mount table is used`() throws {
            // The second system call fails; the first one checks whether the path exists.
            let faults = Faults(failAt: 2, code: ENOSYS)
            #expect(try Faults.$current.withValue(faults) { try Files.isMountPoint("/proc") })
            #expect(faults.failedCall == "statx")
        }
    #endif
}
