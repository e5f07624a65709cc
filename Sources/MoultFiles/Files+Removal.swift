internal import CLinux
internal import MoultBasics
internal import MoultLibc

extension Files {
    /// Removes a directory with everything in it, if it exists. Entries of the directory that are named in `last` are removed after
    /// all others.
    ///
    /// Works through open directory descriptors, so it follows no symlink, not even one that replaces a directory in the
    /// meantime. Names may have any bytes, and directories may be nested to any depth. `known` identifies the directory to remove,
    /// by default the one found at the start. If the path now leads to a different one, the function throws and removes nothing
    /// from it.
    package static func removeTree(_ path: String, knownAs known: FileFacts? = nil, last: [String] = []) throws {
        guard let found = try facts(path) else { return }
        if let known, !known.isSameFile(found) { throw exchanged(path) }
        guard found.kind == .directory else { return try remove(path) }
        try TreeRemoval(path).empty(found, last: last.map { Array($0.utf8) })
        do { try Syscall.rmdir(path) } catch {
            if error == .noEntry { return }
            throw error.error("cannot remove the directory \(path)", .name(path))
        }
    }

    fileprivate static func exchanged(_ path: String) -> MoultError {
        MoultError(
            .system, what: "cannot remove the directory \(path)", why: "another user or program has replaced it",
            now: "Inspect it, and remove it if it is not needed: \(run: ["ls", "-la", path])")
    }
}

/// Empties a directory, one open directory at a time: the levels above are only remembered, and `..` must lead back to them.
private struct TreeRemoval {
    private let path: String

    init(_ path: String) { self.path = path }

    /// A directory that is being emptied.
    private struct Level {
        let facts: FileFacts
        /// The name in the directory above; empty for the first.
        let name: [UInt8]
        /// The names that are still to be removed, in reverse order.
        var names: [[UInt8]]
    }

    func empty(_ known: FileFacts, last: [[UInt8]]) throws {
        let opened = try wrapped("cannot open \(path)", .read(path)) { () throws(Errno) in
            try openForReading { flags throws(Errno) in try Syscall.open(path, flags) }
        }
        var here = Descriptor(owning: opened, path)
        guard try known.isSameFile(here.facts()) else { throw Files.exchanged(path) }
        var levels = [try level(here, name: [])]
        levels[0].names = last + levels[0].names.filter { !last.contains($0) }
        while true {
            guard let name = levels[levels.count - 1].names.popLast() else {
                if levels.count == 1 { break }
                here = try leave(here, &levels)
                continue
            }
            if try remove(name, in: here.number, levels) { continue }
            let number = here.number
            let inner = try wrapped("cannot open \(text(levels, name))") { () throws(Errno) in
                try openForReading { flags throws(Errno) in try Syscall.open(name, in: number, flags) }
            }
            here = Descriptor(owning: inner, path)
            levels.append(try level(here, name: name))
        }
        try here.close()
    }

    private func level(_ directory: borrowing Descriptor, name: [UInt8]) throws -> Level {
        let facts = try directory.facts()
        // Files in a read-only directory cannot be removed before its mode is changed.
        if facts.mode & 0o700 != 0o700 { try directory.setMode(0o700) }
        return Level(facts: facts, name: name, names: try directory.names().reversed())
    }

    /// Removes a file, a link or an empty directory; returns false for any other directory.
    private func remove(_ name: [UInt8], in directory: Int32, _ levels: [Level]) throws -> Bool {
        do { try Syscall.unlink(name, in: directory) } catch {
            if error == .noEntry { return true }
            guard error == Errno(EISDIR) else { throw error.error("cannot remove \(text(levels, name))", .name(path)) }
            return false
        }
        return true
    }

    /// Returns to the directory above, and removes the one that is empty now.
    private func leave(_ directory: borrowing Descriptor, _ levels: inout [Level]) throws -> Descriptor {
        let number = directory.number
        let above = try wrapped("cannot open \(path)") { () throws(Errno) in
            try Syscall.open(Array("..".utf8), in: number, O_DIRECTORY | O_RDONLY)
        }
        let upper = Descriptor(owning: above, path)
        let name = levels.removeLast().name
        // Another program could have moved the directory meanwhile.
        guard try levels[levels.count - 1].facts.isSameFile(upper.facts()) else { throw Files.exchanged(path) }
        let place = upper.number
        do { try Syscall.unlink(name, in: place, isDirectory: true) } catch {
            if error != .noEntry { throw error.error("cannot remove the directory \(text(levels, name))", .name(path)) }
        }
        return upper
    }

    /// Opens a directory. If its mode denies reading, changes the mode first.
    private func openForReading(_ open: (Int32) throws(Errno) -> Int32) throws(Errno) -> Int32 {
        let flags = O_DIRECTORY | O_NOFOLLOW
        do { return try open(flags | O_RDONLY) } catch { guard error == .denied else { throw error } }
        let closed = try open(flags | SystemFeatures.pathOnly)
        defer { _ = MoultLibc.close(closed) }
        try Syscall.chmod("\(SystemFeatures.proc)/self/fd/\(closed)", 0o700)
        return try Syscall.open(".", in: closed, flags | O_RDONLY)
    }

    /// A path for messages, which shows at most the upper levels.
    private func text(_ levels: [Level], _ name: [UInt8]) -> String {
        let names = (levels.dropFirst().prefix(8).map(\.name) + [name]).map { OutsideText.shown($0) }
        return "\(path)/\(names.joined(separator: "/"))"
    }
}
