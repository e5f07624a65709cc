internal import MoultBasics
internal import MoultLibc

/// The file system of a path, from `/proc/self/mountinfo`. Querying the file system itself could hang if its server is
/// unreachable, and with FUSE would not reveal the underlying type.
package struct MountedFileSystem: Sendable, Equatable {
    package let mountPoint: String
    /// The type of the file system, such as `ext4`, `nfs4`, `fuse.sshfs`.
    package let type: String
    package let isReadOnly: Bool
    /// The device number of the file system; on some file systems, `stat` reports a different one for the files.
    let major: UInt64
    let minor: UInt64

    package static func of(_ path: String) throws -> MountedFileSystem? {
        guard let resolved = Files.resolvedIfFound(path) else { return nil }
        let table = try Files.read("\(SystemFeatures.proc)/self/mountinfo", limit: 1 << 24) ?? []
        // A mount point that is not valid UTF-8 is not above this path.
        let lines = table.split(separator: UInt8(ascii: "\n")).compactMap { OutsideText.valid($0) }
        return find(resolved, in: lines.joined(separator: "\n"))
    }

    /// Returns the file system of a path, from a table with lines such as `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3
    /// /dev/root rw,errors=continue`.
    static func find(_ path: String, in table: String) -> MountedFileSystem? {
        var best: MountedFileSystem?
        for line in table.split(ascii: "\n") {
            let words = line.split(ascii: " ")
            let device = words.count > 2 ? words[2].split(separator: ":").compactMap { UInt64($0) } : []
            guard words.count > 5, device.count == 2, let dash = words.firstIndex(of: "-"), dash + 1 < words.count
            else { continue }
            guard let mountPoint = unescaped(words[4]) else { continue }
            let isAbove = mountPoint == "/" || path.hasBytes(of: mountPoint) || path.isBelow(mountPoint)
            // Of two file systems mounted at the same place, the later one is visible.
            guard isAbove, mountPoint.utf8.count >= (best?.mountPoint.utf8.count ?? 0) else { continue }
            let options = words[5].split(separator: ",") + (words.last?.split(separator: ",") ?? [])
            best = MountedFileSystem(
                mountPoint: mountPoint, type: String(words[dash + 1]), isReadOnly: options.contains("ro"),
                major: device[0], minor: device[1])
        }
        return best
    }

    /// Whether other machines may access the same files, which makes locks and shared memory unreliable.
    package var isShared: Bool {
        let types = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "virtiofs", "vboxsf"]
        return types.contains(type) || type == "fuse" || type.hasPrefix("fuse.")
    }

    /// Decodes a path in which the kernel has written spaces, tabs, line feeds and backslashes as a backslash and three octal
    /// digits; nil if the result is not valid UTF-8.
    private static func unescaped(_ word: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(word.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = String(decoding: rest.prefix(3), as: UTF8.self)
            if byte == UInt8(ascii: "\\"), let code = UInt8(digits, radix: 8) {
                bytes.append(code)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return OutsideText.valid(bytes)
    }
}
