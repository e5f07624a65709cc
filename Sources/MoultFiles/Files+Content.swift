internal import CLinux
internal import MoultBasics
internal import MoultLibc

extension Files {
    /// Creates a new file with the content of another: shares blocks where the file system supports that, and copies bytes
    /// otherwise.
    ///
    /// Does not sync the new file; a caller that needs durability must do that.
    package static func copy(_ old: String, to new: String, mode: UInt32) throws {
        try copy(Descriptor(old, .read), to: new, mode: mode)
    }

    /// Copies an open file in the same way. `copied` gets the number of bytes that are copied, and may throw.
    package static func copy(
        _ source: borrowing Descriptor, to new: String, mode: UInt32, copied: (Int) throws -> Void = { _ in }
    ) throws {
        let target = try Descriptor(new, .create, mode: mode)
        try target.setMode(mode)
        if try !target.shareBlocks(of: source) { try target.copyData(of: source, copied) }
        try target.close()
    }

    /// Returns the mode of a new file that is made from these files: 0644 if every user can read all of them, otherwise 0600. The new
    /// file may belong to another group. Missing files do not count.
    package static func mode(ofFileFrom sources: [String]) throws -> UInt32 {
        try sources.allSatisfy { try (factsThroughLinks($0)?.mode ?? 0o644) & 0o044 == 0o044 } ? 0o644 : 0o600
    }

    /// Creates a new file that shares the blocks of another; if the file system does not support that, returns false and leaves
    /// no file.
    package static func shareIfPossible(_ old: String, at new: String, mode: UInt32) throws -> Bool {
        let source = try Descriptor(old, .read)
        let target = try Descriptor(new, .create, mode: mode)
        try target.setMode(mode)
        if try target.shareBlocks(of: source) {
            try target.close()
            return true
        }
        try target.close()
        try remove(new)
        return false
    }
}

extension Descriptor {
    /// Copies all bytes of another file. Holes stay holes: an attacker can make a file of terabytes that has one block.
    fileprivate borrowing func copyData(of source: borrowing Descriptor, _ copied: (Int) throws -> Void) throws {
        try withUnsafeTemporaryAllocation(byteCount: 1 << 20, alignment: 16) { buffer in
            var offset = 0
            while let data = try source.data(from: offset) {
                offset = data.lowerBound
                while offset < data.upperBound {
                    try LongRead.check(source.path)
                    let part = UnsafeMutableRawBufferPointer(
                        rebasing: buffer[..<min(buffer.count, data.upperBound - offset)])
                    let count = try source.read(into: part, at: offset)
                    if count == 0 { return }
                    try write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(part)[..<count]), at: offset)
                    offset += count
                    try copied(offset)
                }
            }
        }
        let size = try source.facts().size
        if try facts().size < size { try truncate(to: size) }
    }

    /// Returns the next range of the file that is not a hole; nil after the last one.
    private borrowing func data(from offset: Int) throws -> Range<Int>? {
        let (number, path) = (self.number, self.path)
        do throws(Errno) {
            let start = try Syscall.seekData(number, offset)
            return start..<(try Syscall.seekHole(number, start))
        } catch {
            if error == Errno(ENXIO) { return nil }
            // A file system without this call: everything is data.
            if error == Errno(EINVAL) { return offset == 0 ? 0..<Int.max : nil }
            throw error.error("cannot read \(path)")
        }
    }

    /// Shares the blocks of another file; returns false if the file system does not support that.
    borrowing func shareBlocks(of other: borrowing Descriptor) throws -> Bool {
        do throws(Errno) {
            try Syscall.clone(number, other.number)
            return true
        } catch {
            if error.isOne(of: EOPNOTSUPP, EXDEV, EINVAL, ENOTTY, ENOSYS) { return false }
            throw error.error("cannot copy to \(path)")
        }
    }
}

extension Files {
    /// Returns the path at which a file's new content is written before it replaces the file. A file that already exists there
    /// is removed, so the name is one that no user would choose.
    package static func staged(_ path: String) -> String { "\(directory(of: path))/.\(name(of: path)).moult-new" }

    /// Replaces a file's content so that after a crash the file has either the old or the new content in full. Processes that
    /// replace the same file at the same time take turns. Without `durable`, a power failure may leave the file empty.
    package static func replace(
        _ path: String, with bytes: [UInt8], mode: UInt32 = 0o644, durable: Bool = true
    ) throws {
        let temporary = staged(path)
        let file = try createStaged(temporary)
        do {
            // Sets the mode independently of the umask.
            try file.setMode(mode)
            try file.write(bytes)
            if durable { try file.sync() }
            try rename(temporary, to: path)
        } catch {
            // The first error is the one to report; the next attempt removes leftover files.
            try? remove(temporary)
            throw error
        }
        try file.close()
        if durable { try syncDirectory(directory(of: path)) }
    }

    /// Removes the staged file that a killed process left behind, if any. Returns false if a process is writing the file.
    @discardableResult
    package static func removeStaged(of path: String) throws -> Bool { try removeUnlocked(staged(path)) }

    /// Creates the staged file, which stays locked until it is closed. An existing file without a lock was left behind by a
    /// killed process.
    private static func createStaged(_ path: String) throws -> Descriptor {
        // The wait is limited, because other users can lock a leftover file that they may read.
        var backoff = Backoff(.seconds(5))
        while true {
            if let file = try createLocked(path) { return file }
            if try !removeUnlocked(path), !backoff.pause() { try remove(path) }
        }
    }

    /// Creates and locks a file. Returns nil if the name exists, or if another process locked or removed the new file as a
    /// leftover before this process locked it.
    private static func createLocked(_ path: String) throws -> Descriptor? {
        do {
            let file = try Descriptor(path, .create)
            guard try lock(file.number, path), try file.facts().isSameFile(facts(path)) else { return nil }
            return file
        } catch let error as MoultError {
            if error.cause as? Errno == .exists { return nil }
            throw error
        }
    }

    private static func removeUnlocked(_ path: String) throws -> Bool {
        guard let found = try facts(path) else { return true }
        guard found.kind == .file else {
            do { try remove(path) } catch var error as MoultError {
                error.now = moveAway(path)
                throw error
            }
            return true
        }
        do {
            let file = Descriptor(owning: try openToLock(path), path)
            guard try lock(file.number, path) else { return false }
            // If the files differ, another process has replaced the leftover file in the meantime.
            if try file.facts().isSameFile(facts(path)) { try remove(path) }
            try file.close()
        } catch let error as Errno {
            // Permission to remove another user's file depends on the directory.
            if error == .noEntry { return true }
            guard error == .denied else { throw error.error("cannot open \(path)", .read(path)) }
            try remove(path)
        }
        return true
    }

    private static func openToLock(_ path: String) throws(Errno) -> Int32 {
        // NFS locks a file exclusively only if it is open for writing.
        do { return try Syscall.open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW) } catch {
            guard error == .denied else { throw error }
            return try Syscall.open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
        }
    }

    /// Locks an open file; returns false if another process has it locked. Returns true without a lock if the file system does
    /// not support locks.
    private static func lock(_ file: Int32, _ path: String) throws -> Bool {
        do {
            try Syscall.flock(file, LOCK_EX | LOCK_NB)
            return true
        } catch {
            if error == .wouldBlock { return false }
            if error.isOne(of: ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL, EBADF) { return true }
            throw error.error("cannot lock \(path)")
        }
    }

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
        var here = try opened(path, .read(path)) { flags throws(Errno) in try Syscall.open(path, flags) }
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
            here = try opened(text(levels, name)) { flags throws(Errno) in try Syscall.open(name, in: number, flags) }
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
        let above: Int32
        do { above = try Syscall.open("..", in: directory.number, O_DIRECTORY | O_RDONLY) } catch {
            throw error.error("cannot open \(path)")
        }
        let upper = Descriptor(owning: above, path)
        let name = levels.removeLast().name
        // Another program could have moved the directory meanwhile.
        guard try levels[levels.count - 1].facts.isSameFile(upper.facts()) else { throw Files.exchanged(path) }
        do { try Syscall.unlink(name, in: upper.number, isDirectory: true) } catch {
            if error != .noEntry { throw error.error("cannot remove the directory \(text(levels, name))", .name(path)) }
        }
        return upper
    }

    private func opened(
        _ place: @autoclosure () -> String, _ needs: Permission..., open: (Int32) throws(Errno) -> Int32
    ) throws -> Descriptor {
        do { return Descriptor(owning: try openForReading(open), path) } catch {
            let what = "cannot open \(place())"
            throw needs.first.map { error.error(what, $0) } ?? error.error(what)
        }
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
