internal import MoultBasics
internal import MoultLibc

extension Files {
    /// Returns the absolute path of a file with all symlinks resolved; the file itself need not exist.
    ///
    /// In a directory that other users may write to, a symlink of another user is followed only to a file of the same user, or
    /// if that user owns the directory: otherwise any user could choose which of this user's files is opened. Linux applies a
    /// similar rule in directories such as /tmp. Root does not follow it to a file of the same user either: that user could
    /// exchange a directory on the way after this check, and SQLite would create sidecars in any directory.
    ///
    /// A path in a pinned work or output directory starts at the open directory: `/proc/self/fd/N/NAME`.
    package static func resolvedForOpening(_ path: String) throws -> String { try resolutionForOpening(path).path }

    /// The file to which a path leads.
    package struct Resolution {
        /// The path without symlinks.
        package var path: String
        /// The facts of the file; nil if it does not exist.
        package var facts: FileFacts?
        /// The owners of the symlinks on the way.
        package var linkOwners: Set<UInt32> = []
    }

    /// Like `resolvedForOpening`, but also returns what was learned on the way.
    package static func resolutionForOpening(_ path: String) throws -> Resolution {
        var owners: Set<UInt32> = []
        var found: FileFacts?
        var (here, rest) = ("", ArraySlice<String>())
        func start(_ path: String) throws {
            let below: String
            if let (number, name) = PinnedDirectory.split(path) {
                (here, below) = ("\(PinnedDirectory.descriptors)\(number)", name)
            } else if let (directory, name) = try PinnedDirectory.above(path) ?? PinnedDirectory.above(absolute(path)),
                let open = directory.descriptorPath
            {
                (here, below) = (open, name)
            } else {
                (here, below) = ("", try absolute(path))
            }
            rest = below.pathParts().map(String.init) + rest
        }
        try start(path)
        var links = 0
        while let name = rest.popFirst() {
            if name == "." { continue }
            found = nil
            if name == ".." {
                // The kernel finds the directory above an open one.
                let isOpen = here.hasBytePrefix(PinnedDirectory.descriptors) && PinnedDirectory.split(here) == nil
                if isOpen || here.hasByteSuffix("/..") {
                    here += "/.."
                    continue
                }
                here = here.isEmpty || directory(of: here) == "/" ? "" : directory(of: here)
                continue
            }
            let next = "\(here)/\(name)"
            guard let facts = try facts(next) else {
                return Resolution(path: ([next] + rest).joined(separator: "/"), linkOwners: owners)
            }
            guard facts.kind == .link, let target = try target(ofLink: next) else {
                (here, found) = (next, facts)
                continue
            }
            links += 1
            guard links <= 40 else {
                throw MoultError(
                    .system, what: "cannot open \(path)", why: "it leads through more than 40 symbolic links")
            }
            try requireTrusted(link: next, facts, to: target, opening: path)
            owners.insert(facts.owner)
            if target.isAbsolutePath { try start(target) } else { rest = target.pathParts().map(String.init) + rest }
        }
        let end = here.isEmpty ? "/" : here
        return Resolution(path: end, facts: try found ?? factsThroughLinks(end), linkOwners: owners)
    }

    private static func requireTrusted(link: String, _ facts: FileFacts, to target: String, opening path: String) throws
    {
        if facts.owner == 0 || facts.owner == geteuid() { return }
        if let directory = try factsThroughLinks(directory(of: link)),
            directory.owner == facts.owner || directory.mode & 0o022 == 0
        {
            return
        }
        let owner = try factsThroughLinks(link)?.owner
        if owner == facts.owner, geteuid() != 0 { return }
        let place = target.isAbsolutePath ? target : "\(directory(of: link))/\(target)"
        throw untrusted(link, of: facts.owner, to: place, of: owner, what: "cannot open \(path)")
    }

    /// Returns the error for a symlink of another user. `targetOwner` is nil if the target does not exist.
    static func untrusted(
        _ link: String, of owner: UInt32, to place: String, of targetOwner: UInt32?, what: String
    ) -> MoultError {
        let (link, place) = (PinnedDirectory.named(link), PinnedDirectory.named(place))
        return MoultError(
            .system, .refused, what: what,
            why: "the symbolic link \(link) belongs to user \(userName(owner)), and "
                + (targetOwner.map { "its target belongs to user \(userName($0))" } ?? "its target does not exist"),
            now: "If you trust that user, use the path \(place) instead of the link.")
    }
}
