internal import MoultLibc
internal import Synchronization

/// A store's `.moult` directory, kept open so that all paths below it are reached through this descriptor, even if the
/// directories and symlinks above it change. The store's lock owns it.
///
/// A command that writes outside of a store pins its work directory and its output directory. No other user can change the
/// content of a work directory, so symlinks below it are not checked.
package final class PinnedDirectory: Sendable {
    let number: Int32
    package let path: String
    /// The path without the symlinks that were followed, if the directory was opened for output.
    package let place: String

    private struct Weak: Sendable {
        weak let directory: PinnedDirectory?
        let isWork: Bool
    }
    private static let all = Mutex<[String: Weak]>([:])

    /// Throws if the directory does not exist.
    package convenience init(_ path: String) throws { try self.init(path, isWork: false) }

    init(_ path: String, isWork: Bool) throws {
        number = try wrapped("cannot open \(path)", .read(path)) { () throws(Errno) in
            try Syscall.open(path, SystemFeatures.pathOnly | O_DIRECTORY)
        }
        (self.path, place) = (path, path)
        Self.all.withLock { $0[path] = Weak(directory: self, isWork: isWork) }
    }

    /// Pins an open directory; the path of the descriptor has no symlinks.
    init(_ path: String, isWork: Bool, opened: consuming Descriptor) throws {
        let directory = opened
        number = try wrapped("cannot open \(path)") { () throws(Errno) in
            try Syscall.open(".", in: directory.number, SystemFeatures.pathOnly | O_DIRECTORY)
        }
        (self.path, place) = (path, directory.path)
        Self.all.withLock { $0[path] = Weak(directory: self, isWork: isWork) }
    }

    /// Pins the locked work directory, even if its path now leads elsewhere.
    init(_ path: String, lockedBy lock: FileLock) throws {
        number = try wrapped("cannot open \(path)") { () throws(Errno) in try lock.openAgain() }
        (self.path, place) = (path, path)
        Self.all.withLock { $0[path] = Weak(directory: self, isWork: true) }
    }

    deinit {
        Self.all.withLock { all in if all[path]?.directory == nil { all[path] = nil } }
        // Nothing was written through the descriptor, so close has nothing to report.
        _ = MoultLibc.close(number)
    }

    #if DEBUG
        /// For tests in which a store disappears during an update: forgets the directory, as if no command had locked it.
        package static func forget(_ path: String) { all.withLock { $0[path] = nil } }
    #endif

    static func of(_ path: Substring) -> PinnedDirectory? {
        all.withLock { all in all.isEmpty ? nil : all[String(path)]?.directory }
    }

    /// Returns the pinned work directory or output directory with this path.
    static func work(_ path: String) -> PinnedDirectory? {
        all.withLock { all in all[path].flatMap { $0.isWork ? $0.directory : nil } }
    }

    /// Returns the nearest pinned work directory above a path, and the rest of the path; nil if no work directory is above it,
    /// as for most paths.
    static func above(_ path: String) -> (directory: PinnedDirectory, rest: String)? {
        let nearest = all.withLock { all in
            all.filter { place, pinned in
                pinned.isWork && path.utf8.count > place.utf8.count && path.utf8.starts(with: place.utf8)
                    && path.utf8.dropFirst(place.utf8.count).first == UInt8(ascii: "/")
            }.max { $0.key.utf8.count < $1.key.utf8.count }
        }
        // This happens outside the lock, because deinitializing a directory takes the lock as well.
        guard let nearest, let directory = nearest.value.directory else { return nil }
        let rest = path.utf8.dropFirst(nearest.key.utf8.count).drop { $0 == UInt8(ascii: "/") }
        return (directory, rest.isEmpty ? "." : String(Substring(rest)))
    }
}
