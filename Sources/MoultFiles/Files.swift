internal import CLinux
package import MoultBasics
internal import MoultLibc

/// Operations on files by path.
package enum Files {
    /// Returns the metadata of the file at a path, without following symlinks; nil if the file does not exist.
    package static func facts(_ path: String) throws -> FileFacts? {
        do { return FileFacts(try Syscall.lstat(path)) } catch {
            if error == .noEntry || error == .notADirectory { return nil }
            throw error.error("cannot access \(path)", .read(path))
        }
    }

    /// Returns the metadata of the file at a path, following symlinks; nil if the file does not exist.
    package static func factsThroughLinks(_ path: String) throws -> FileFacts? {
        do { return FileFacts(try Syscall.stat(path)) } catch {
            if error == .noEntry || error == .notADirectory { return nil }
            throw error.error("cannot access \(path)", .read(path))
        }
    }

    /// Returns when the file at a path was created; nil if the file system does not record that. A copy has a different time
    /// than its original, and no program can set this time.
    package static func birth(_ path: String) throws -> FileFacts.Moment? {
        do { return try Syscall.birth(path) } catch {
            if error == .noEntry || error == .notADirectory { return nil }
            throw error.error("cannot access \(path)", .read(path))
        }
    }

    /// Returns the target of a symlink; nil if the path is not a symlink.
    package static func target(ofLink path: String) throws -> String? {
        do { return try target(path) } catch {
            let nothing: [Errno] = [.noEntry, .invalid, .notADirectory]
            if nothing.contains(error) { return nil }
            throw error.error("cannot read the link \(path)", .read(path))
        }
    }

    /// Returns the target of a symbolic link.
    static func target(_ path: String) throws(Errno) -> String {
        try withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer throws(Errno) -> String in
            let count = try Syscall.readlink(path, buffer)
            // Decodes the bytes directly, because mapping them to another type first would take longer than the system call
            // itself.
            return try Syscall.text(UnsafeRawBufferPointer(buffer)[..<count])
        }
    }

    /// Returns the path of this process's program; nil if neither the kernel's link nor the path with which it was started
    /// leads to the program.
    package static func ownProgram() throws -> String? {
        if let path = try target(ofLink: "\(SystemFeatures.proc)/self/exe") { return path }
        // Without /proc, only the path with which the program was started is known. A relative path is useless after a change
        // of directory.
        let path = try OutsideText.path(moult_program_path(), "the path of this program")
        return try path.isAbsolutePath && factsThroughLinks(path)?.kind == .file ? path : nil
    }

    /// Returns the content of a file; nil if the file does not exist. Throws if it is larger than `limit` bytes.
    package static func read(_ path: String, limit: Int) throws -> [UInt8]? {
        guard let file = try Descriptor.ifThere(path, .record) else { return nil }
        let facts = try file.facts()
        guard facts.kind == .file else {
            // If the directory has content, the path itself is probably wrong, and the content must not be moved away.
            let isFull = facts.kind == .directory && (try? list(path).isEmpty) == false
            throw MoultError(
                .system, what: "cannot read \(path)", why: isFull ? "it is a directory" : "it is not a regular file",
                now: isFull ? nil : moveAway(path))
        }
        var bytes: [UInt8] = []
        // Files in /proc report no size, and are consistent only within one read call.
        let least = facts.size == 0 ? 1 << 16 : 512
        // The limit also stops reading a file that keeps growing.
        while bytes.count <= limit {
            let chunk = max(least, min(facts.size - bytes.count + 1, limit + 1 - bytes.count))
            let more = try [UInt8](unsafeUninitializedCapacity: chunk) { buffer, count in
                count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
            }
            if more.isEmpty { return bytes }
            bytes += more
        }
        throw MoultError(.system, what: "cannot read \(path)", why: "it is larger than \(ByteCount(limit))")
    }

    /// Returns the first bytes of a file, at most `count`.
    package static func beginning(of path: String, count: Int) throws -> [UInt8] {
        let file = try Descriptor(path, .read)
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    /// Returns the advice to move away a file or directory that occupies a path which moult needs.
    package static func moveAway(_ path: String) -> Advice { "Move it away: \(commandToMoveAway(path))" }

    /// Returns the command that moves away a file or directory. If it is a database, its sidecars go with it: they may have some
    /// of its rows, and SQLite would use them with another file at the same path.
    package static func commandToMoveAway(_ path: String) -> Advice.Command { Advice.Command(movesAway(path)) }

    /// Returns the command as one command for each file.
    package static func movesAway(_ path: String) -> [[String]] {
        // The command must not overwrite a file that was moved there on earlier advice. Advice is shown even if a path cannot be
        // examined.
        let free = (try? firstFree("\(path).old", and: SidecarSuffixes.all)) ?? "\(path).old"
        let present = ([""] + SidecarSuffixes.all).filter { ((try? facts(path + $0)) ?? nil) != nil }
        return (present.isEmpty ? [""] : present).map { ["mv", path + $0, free + $0] }
    }

    /// Returns the path itself if nothing exists there, otherwise the path with the lowest number, from 2, that makes it free;
    /// with each of the suffixes, it must be free too.
    package static func firstFree(_ path: String, and suffixes: [String] = []) throws -> String {
        var (free, number) = (path, 2)
        while try ([""] + suffixes).contains(where: { try facts(free + $0) != nil }) {
            free = "\(path).\(number)"
            number += 1
        }
        return free
    }

    /// Returns the names in a directory, sorted; empty if it does not exist. Names that are not valid UTF-8 are left out: moult
    /// creates none, and a repaired name would be that of another file.
    package static func list(_ path: String) throws -> [String] {
        try rawNames(in: path).compactMap { OutsideText.valid($0) }.sorted()
    }

    /// Returns the entries of a directory with their facts, all through one descriptor; empty if the directory does not exist.
    /// Symlinks are not followed.
    package static func entries(_ path: String) throws -> [String: FileFacts] {
        var entries: [String: FileFacts] = [:]
        _ = try rawNames(in: path) { directory, name in
            var facts = moult_stat()
            let code = (name + [0]).withUnsafeBytes {
                $0.assumingMemoryBound(to: CChar.self).baseAddress.map {
                    fstatat(directory, $0, &facts, AT_SYMLINK_NOFOLLOW)
                }
            }
            // Another program may have just removed the file.
            if code != 0, moult_errno() == ENOENT { return }
            guard code == 0 else { throw Errno(moult_errno()).error("cannot access a file in \(path)", .read(path)) }
            if let name = OutsideText.valid(name) { entries[name] = FileFacts(facts) }
        }
        return entries
    }

    /// Returns whether a directory has no entries, whatever their names; true if it does not exist.
    package static func isEmpty(_ path: String) throws -> Bool { try rawNames(in: path).isEmpty }

    /// Returns whether all names in a directory are known; false if one is not valid UTF-8.
    package static func hasOnly(_ path: String, where isKnown: (String) -> Bool) throws -> Bool {
        try rawNames(in: path).allSatisfy { OutsideText.valid($0).map(isKnown) ?? false }
    }

    private static func rawNames(
        in path: String, visit: (Int32, [UInt8]) throws -> Void = { _, _ in }
    ) throws -> [[UInt8]] {
        let number: Int32
        do { number = try Syscall.open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK) } catch {
            if error == .noEntry { return [] }
            var failure = error.error("cannot list \(path)", .read(path))
            if error == .notADirectory { failure.now = moveAway(path) }
            throw failure
        }
        return try rawNames(consuming: number, path, visit: visit)
    }

    /// Returns the names in an open directory as bytes, sorted; closes the descriptor.
    static func rawNames(
        consuming number: Int32, _ path: String, visit: (Int32, [UInt8]) throws -> Void = { _, _ in }
    ) throws -> [[UInt8]] {
        guard let directory = fdopendir(number) else {
            let code = Errno(moult_errno())
            _ = MoultLibc.close(number)
            throw code.error("cannot list \(path)")
        }
        defer { closedir(directory) }
        var names: [[UInt8]] = []
        while true {
            moult_set_errno(0)
            guard let entry = readdir(directory) else {
                let code = moult_errno()
                if code != 0 { throw Errno(code).error("cannot list \(path)") }
                return names.sorted { $0.lexicographicallyPrecedes($1) }
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name == Array(".".utf8) || name == Array("..".utf8) { continue }
            try visit(number, name)
            names.append(name)
        }
    }

    package static func isWritable(_ path: String) throws -> Bool { try mayAccess(path, W_OK) }
    package static func isReadable(_ path: String) throws -> Bool { try mayAccess(path, R_OK) }

    private static func mayAccess(_ path: String, _ mode: Int32) throws -> Bool {
        do {
            try Syscall.access(path, mode)
            return true
        } catch {
            // Any other error, such as that of a failing disk, does not mean that access is denied.
            let denials: [Errno] = [.denied, .notPermitted, .readOnly, .noEntry, .notADirectory, .loop]
            guard denials.contains(error) else { throw error.error("cannot access \(path)") }
            return false
        }
    }

    /// Returns the number of bytes that an ordinary user can still write to the file system of a path.
    package static func freeSpace(_ path: String) throws -> Int { try freeSpaceAndFiles(path).bytes }

    /// Also returns how many files the file system can still have; nil if it has no limit of files.
    package static func freeSpaceAndFiles(_ path: String) throws -> (bytes: Int, files: Int?) {
        let facts = try wrapped("cannot determine the free space at \(path)") { () throws(Errno) in
            try Syscall.statvfs(path)
        }
        return (Int(facts.f_bavail) * Int(facts.f_frsize), facts.f_files == 0 ? nil : Int(facts.f_favail))
    }

    /// Returns whether an error means missing permission or a read-only file system.
    package static func isDenied(_ error: any Error) -> Bool {
        guard let code = (error as? MoultError)?.cause as? Errno else { return false }
        return code == .denied || code == .readOnly || code == Errno(EPERM)
    }
}
