internal import CLinux
internal import MoultBasics
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
    private let names: Set<String>

    private struct Weak: Sendable {
        weak let directory: PinnedDirectory?
        let isWork: Bool
    }
    private static let all = Mutex<[String: Weak]>([:])

    /// Pins the directory; returns nil if it is pinned already, because another thread of this process uses it. Throws if the
    /// directory does not exist.
    package static func ifFree(_ path: String) throws -> PinnedDirectory? {
        // Without this, a second pin would take the place of the first one, and remove it at its own end.
        let isFree = beginning.withLock { $0.insert(path).inserted }
        guard isFree else { return nil }
        defer { beginning.withLock { _ = $0.remove(path) } }
        return of(path[...]) == nil ? try PinnedDirectory(path, isWork: false) : nil
    }

    /// The directories that a thread is pinning at the moment.
    private static let beginning = Mutex<Set<String>>([])

    init(_ path: String, isWork: Bool) throws {
        number = try wrapped("cannot open \(path)", .read(path)) { () throws(Errno) in
            try Syscall.open(path, SystemFeatures.pathOnly | O_DIRECTORY)
        }
        (self.path, place, names) = (path, path, isWork ? Self.names(path, path) : [path])
        register(isWork: isWork)
    }

    /// Pins an open directory; the path of the descriptor has no symlinks.
    init(_ path: String, isWork: Bool, opened: consuming Descriptor) throws {
        let directory = opened
        number = try wrapped("cannot open \(path)") { () throws(Errno) in
            try Syscall.open(".", in: directory.number, SystemFeatures.pathOnly | O_DIRECTORY)
        }
        (self.path, place, names) = (path, directory.path, isWork ? Self.names(path, directory.path) : [path])
        register(isWork: isWork)
    }

    /// Pins the locked work directory, even if its path now leads elsewhere.
    init(_ path: String, lockedBy lock: FileLock) throws {
        number = try wrapped("cannot open \(path)") { () throws(Errno) in try lock.openAgain() }
        (self.path, place, names) = (path, path, Self.names(path, path))
        register(isWork: true)
    }

    /// A work directory is also known by its absolute path, because some code makes paths absolute. If the name of the working
    /// directory is not valid UTF-8, that code fails.
    private static func names(_ path: String, _ place: String) -> Set<String> {
        Set([path] + [path, place].compactMap { try? Files.absolute($0) })
    }

    private func register(isWork: Bool) {
        Self.all.withLock { all in for name in names { all[name] = Weak(directory: self, isWork: isWork) } }
    }

    deinit {
        Self.all.withLock { all in for name in names where all[name]?.directory == nil { all[name] = nil } }
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

    /// A path of this directory that leads to the open directory itself, for SQLite and for child processes, which resolve paths
    /// themselves; nil without `/proc`.
    var descriptorPath: String? {
        let path = "\(Self.descriptors)\(number)"
        var facts = moult_stat()
        return fstatat(AT_FDCWD, path, &facts, 0) == 0 ? path : nil
    }

    static var descriptors: String { "\(SystemFeatures.proc)/self/fd/" }

    /// Splits a path that starts at a descriptor of this process; nil for any other path.
    package static func split(_ path: String) -> (number: Int32, rest: String)? {
        guard path.hasBytePrefix(descriptors) else { return nil }
        let words = path.utf8.dropFirst(descriptors.utf8.count).split(separator: UInt8(ascii: "/"), maxSplits: 1)
        guard words.count == 2, let number = Int32(String(Substring(words[0]))) else { return nil }
        return (number, String(Substring(words[1])))
    }

    /// Returns a path for a message or a rule, without the descriptor with which it may start. No part of it is a symlink.
    package static func named(_ path: String) -> String {
        // If the name of the directory is not known, the path stays as it is.
        guard let (number, rest) = split(path), var place = try? Files.target("\(descriptors)\(number)") else {
            return path
        }
        for name in rest.pathParts() {
            place = name == ".." ? Files.directory(of: place) : "\(place == "/" ? "" : place)/\(name)"
        }
        return place
    }

    /// Returns whether a path starts at an open directory: a pinned work or output directory, or a descriptor.
    package static func contains(_ path: String) -> Bool { split(path) != nil || above(path) != nil }

    /// Returns a path of a file that a child process gets with the given files (`Subprocess.Command.files`), and that leads through
    /// an open directory if the path is in a pinned one.
    package static func pathInChild(_ path: String, _ files: inout [Int32]) -> String {
        // The child reports a path that it may not open.
        guard let found = try? Files.resolvedForOpening(path), let (number, rest) = split(found) else { return path }
        if !files.contains(number) { files.append(number) }
        return "\(descriptors)\(3 + (files.firstIndex(of: number) ?? 0))/\(rest)"
    }
}
