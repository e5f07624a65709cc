internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// A directory for temporary files that only this user can read, removed when the last reference is released.
///
/// It is in `$TMPDIR`, or else in `/var/tmp` or `/tmp`. Its path has no symlinks, and no other user can rename the directory, nor,
/// if this user is root, any directory above it. So the path always leads to this directory, also in SQLite and in child
/// processes.
package final class ScratchDirectory: Sendable {
    package let path: String

    package init() throws {
        var failures: [MoultError] = []
        let chosen = try ProcessEnvironment.value("TMPDIR")
        // /var/tmp comes before /tmp, because /tmp may be in memory, and databases may be large.
        for parent in [chosen, "/var/tmp", "/tmp"].compactMap(\.self) {
            do throws(MoultError) {
                path = try Self.make(in: parent)
                return
            } catch {
                // A directory that the user chose, and that other users control, is not silently replaced by another one.
                if error.outcome == .refused, parent == chosen { throw error }
                failures.append(error)
            }
        }
        throw MoultError(
            .system, what: "no directory for temporary files",
            why: failures.map(\.problem).joined(separator: "; "),
            now: "Choose another directory: TMPDIR=DIRECTORY", cause: failures.first?.cause)
    }

    deinit {
        // Nothing depends on the removal of the directory, and no caller is left to handle an error.
        try? Files.removeTree(path)
    }

    private static func make(in parent: String) throws(MoultError) -> String {
        let what = "cannot create a scratch directory in \(parent)"
        do {
            let place = try Files.resolved(parent)
            try requireOwn(place, what)
            var template = Array("\(place == "/" ? "" : place)/moult-XXXXXX".utf8CString)
            guard let made = mkdtemp(&template) else { throw Errno(moult_errno()).error(what) }
            return try OutsideText.path(made, "the scratch directory")
        } catch { throw error as? MoultError ?? MoultError(.system, what: what, why: "\(error)", cause: error) }
    }

    /// Throws if another user could replace the scratch directory, or if this user is root, a directory above it.
    private static func requireOwn(_ place: String, _ what: String) throws {
        var here = place
        while true {
            // Not a call of `Syscall`: tests make those of the caller fail.
            var facts = moult_stat()
            guard fstatat(AT_FDCWD, here, &facts, AT_SYMLINK_NOFOLLOW) == 0 else {
                throw Errno(moult_errno()).error(what)
            }
            if let why = try reasonAgainst(FileFacts(facts)) {
                throw MoultError(
                    .system, .refused, what: what, why: "\(here) \(why)",
                    now: "Choose a directory that no other user can change: TMPDIR=DIRECTORY")
            }
            if here == "/" || geteuid() != 0 { return }
            here = Files.directory(of: here)
        }
    }

    /// Returns why another user could rename entries of this user in a directory; nil if none can.
    private static func reasonAgainst(_ directory: FileFacts) throws -> String? {
        if ![0, geteuid()].contains(directory.owner), try !isUnmapped(directory.owner) {
            return "belongs to user \(Files.userName(directory.owner))"
        }
        // In a sticky directory, only the owner of a file or of the directory can rename the file.
        if directory.mode & 0o1000 != 0 || directory.mode & 0o022 == 0 { return nil }
        if directory.mode & 0o002 == 0, Files.isPrivateGroup(directory.group) { return nil }
        return "is writable by other users"
    }

    /// Returns whether the kernel shows this ID for the owner of a file because this user namespace has no ID for that user, as in
    /// a container for the real root.
    private static func isUnmapped(_ user: UInt32) throws -> Bool {
        guard user == 65_534, let map = try Files.read("\(SystemFeatures.proc)/self/uid_map", limit: 1 << 16) else {
            return false
        }
        return !(OutsideText.valid(map) ?? "").split(ascii: "\n").contains { line in
            let numbers = line.split(ascii: " ").compactMap { UInt64($0) }
            return numbers.count == 3 && numbers[0] <= 65_534 && 65_534 < numbers[0] + numbers[2]
        }
    }
}

extension Files {
    /// Creates a scratch directory, passes its path to the closure, and removes it afterwards.
    package static func withScratchDirectory<R>(_ body: (String) throws -> R) throws -> R {
        let scratch = try ScratchDirectory()
        let result = Result { try body(scratch.path) }
        do { try removeTree(scratch.path) } catch {
            // An error from the body matters more than a leftover directory.
            _ = try result.get()
            throw error
        }
        return try result.get()
    }
}
