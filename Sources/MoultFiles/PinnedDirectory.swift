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

    private init(
        _ path: String, _ place: String? = nil, isWork: Bool, _ need: Permission? = nil,
        open: () throws(Errno) -> Int32
    ) throws {
        do { number = try open() } catch {
            let what = "cannot open \(path)"
            throw need.map { error.error(what, $0) } ?? error.error(what)
        }
        (self.path, self.place) = (path, place ?? path)
        names = isWork ? Self.names(path, place ?? path) : [path]
        Self.all.withLock { all in for name in names { all[name] = Weak(directory: self, isWork: isWork) } }
    }

    convenience init(_ path: String, isWork: Bool) throws {
        try self.init(path, isWork: isWork, .read(path)) { () throws(Errno) in
            try Syscall.open(path, SystemFeatures.pathOnly | O_DIRECTORY)
        }
    }

    /// Pins an open directory; the path of the descriptor has no symlinks.
    convenience init(_ path: String, opened directory: borrowing Descriptor) throws {
        let number = directory.number
        try self.init(path, directory.path, isWork: true) { () throws(Errno) in
            try Syscall.open(".", in: number, SystemFeatures.pathOnly | O_DIRECTORY)
        }
    }

    /// Pins the locked work directory, even if its path now leads elsewhere.
    convenience init(_ path: String, lockedBy lock: FileLock) throws {
        try self.init(path, isWork: true) { () throws(Errno) in try lock.openAgain() }
    }

    /// A work directory is also known by its absolute path, because some code makes paths absolute. If the name of the working
    /// directory is not valid UTF-8, that code fails.
    private static func names(_ path: String, _ place: String) -> Set<String> {
        Set([path] + [path, place].compactMap { try? Files.absolute($0) })
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

extension PinnedDirectory {
    /// Opens the directory in which a command writes its output. While the object exists, all paths below `path` start at the
    /// open directory, even if another user replaces the directory or a link to it. With `creating`, creates a missing
    /// directory.
    ///
    /// Follows a symlink of another user only to a directory of that user, or if no other user could have put the link there:
    /// otherwise another user could choose the directory in which this user, for example root, replaces files.
    package static func output(_ path: String, creating: Bool = false) throws -> PinnedDirectory {
        let kind = try Files.factsThroughLinks(path)?.kind
        if let kind, kind != .directory {
            throw MoultError(
                .system, .refused, what: "cannot write to \(path)", why: "it is not a directory",
                now: "Specify a directory.")
        }
        if creating, kind == nil {
            let name = path.withoutFinalSlashes
            let parent = Files.directory(of: name)
            let above = try Files.factsThroughLinks(parent)?.kind == .directory ? output(parent) : nil
            try withExtendedLifetime(above) { try Files.ensureDirectory(name) }
        }
        if let pinned = work(path) { return pinned }
        // Below `.moult`, no symlink is followed at all.
        let place: StorePath?
        do { place = try StorePath(path) } catch { throw error.error("cannot open \(path)", .read(path)) }
        return try place == nil
            ? PinnedDirectory(path, opened: OutputWalk.open(path)) : PinnedDirectory(path, isWork: true)
    }
}

/// Opens a directory component by component. Each directory on the way stays open until the next one is reached, so no other user
/// can exchange a component after it was checked.
private struct OutputWalk {
    private enum Part {
        case name(String)
        /// The end of the target of another user's symlink.
        case end(link: String, owner: UInt32)
    }

    private static let flags = SystemFeatures.pathOnly | O_DIRECTORY

    /// Returns the open directory; its path has no symlinks.
    static func open(_ path: String) throws -> Descriptor {
        func checked<R>(_ body: () throws(Errno) -> R) throws -> R {
            do { return try body() } catch { throw error.error("cannot open \(path)", .read(path)) }
        }
        let pinned = PinnedDirectory.above(path)
        let start = pinned?.directory.path ?? (path.isAbsolutePath ? "/" : ".")
        var here = Descriptor(
            owning: try checked { () throws(Errno) in
                guard let pinned else { return try Syscall.open(start, Self.flags) }
                return try Syscall.open(".", in: pinned.directory.number, Self.flags)
            }, start)
        var rest = names(pinned?.rest ?? path)[...]
        var links = 0
        while let part = rest.popFirst() {
            guard case .name(let name) = part else {
                if case .end(let link, let owner) = part { try require(owner, of: link, here, path) }
                continue
            }
            let place = join(here.path, name)
            let facts = FileFacts(try checked { () throws(Errno) in try Syscall.lstat(name, in: here.number) })
            guard facts.kind == .link else {
                let next = try checked { () throws(Errno) in try Syscall.open(name, in: here.number, Self.flags) }
                here = Descriptor(owning: next, place)
                continue
            }
            links += 1
            guard links <= 40 else { throw Errno.loop.error("cannot open \(path)", .read(path)) }
            let target = try checked { () throws(Errno) in try Syscall.readlink(name, in: here.number) }
            let end = try isTrusted(facts, in: here) ? [] : [Part.end(link: place, owner: facts.owner)]
            if target.isAbsolutePath {
                here = Descriptor(owning: try checked { () throws(Errno) in try Syscall.open("/", Self.flags) }, "/")
            }
            rest = (names(target) + end + rest)[...]
        }
        return here
    }

    private static func names(_ path: String) -> [Part] {
        path.pathParts().filter { $0 != "." }.map { .name(String($0)) }
    }

    /// Returns whether this user or root has created the symlink, or only they can create files in its directory.
    private static func isTrusted(_ link: FileFacts, in directory: borrowing Descriptor) throws -> Bool {
        let own = [0, geteuid()]
        if own.contains(link.owner) { return true }
        let facts = try directory.facts()
        return own.contains(facts.owner) && facts.mode & 0o022 == 0
    }

    private static func require(
        _ owner: UInt32, of link: String, _ target: borrowing Descriptor, _ path: String
    ) throws {
        let found = try target.facts().owner
        if found == owner { return }
        throw Files.untrusted(link, of: owner, to: target.path, of: found, what: "cannot write to \(path)")
    }

    private static func join(_ directory: String, _ name: String) -> String {
        if name == ".." {
            if directory == "." { return ".." }
            return Files.name(of: directory) == ".." ? "\(directory)/.." : Files.directory(of: directory)
        }
        return directory == "." ? name : directory == "/" ? "/\(name)" : "\(directory)/\(name)"
    }
}
