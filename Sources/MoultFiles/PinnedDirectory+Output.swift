internal import MoultBasics
internal import MoultLibc

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
        let place = try wrapped("cannot open \(path)", .read(path)) { () throws(Errno) in try StorePath(path) }
        if place != nil { return try PinnedDirectory(path, isWork: true) }
        return try PinnedDirectory(path, isWork: true, opened: OutputWalk.open(path))
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
            try wrapped("cannot open \(path)", .read(path), body)
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
