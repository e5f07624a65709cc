internal import CLinux
package import MoultBasics
internal import MoultLibc

/// Operations on files by path.
package enum Files {
    /// Returns the metadata of the file at a path, without following symlinks; nil if the file does not exist.
    package static func facts(_ path: String) throws -> FileFacts? {
        do { return FileFacts(try Syscall.lstat(path)) } catch { return try nothing(at: path, error) }
    }

    /// Returns nil for the error of a file that does not exist, and throws any other.
    private static func nothing<Facts>(at path: String, _ error: Errno) throws -> Facts? {
        if error == .noEntry || error == .notADirectory { return nil }
        throw error.error("cannot access \(path)", .read(path))
    }

    /// Returns the metadata of the file at a path, following symlinks; nil if the file does not exist.
    package static func factsThroughLinks(_ path: String) throws -> FileFacts? {
        do { return FileFacts(try Syscall.stat(path)) } catch { return try nothing(at: path, error) }
    }

    /// Returns when the file at a path was created; nil if the file system does not record that. A copy has a different time
    /// than its original, and no program can set this time.
    package static func birth(_ path: String) throws -> FileFacts.Moment? {
        do { return try Syscall.birth(path) } catch { return try nothing(at: path, error) }
    }

    /// Returns the target of a symlink; nil if the path is not a symlink.
    package static func target(ofLink path: String) throws -> String? {
        do { return try target(path) } catch {
            if error.isOne(of: ENOENT, EINVAL, ENOTDIR) { return nil }
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
            guard error.isOne(of: EACCES, EPERM, EROFS, ENOENT, ENOTDIR, ELOOP) else {
                throw error.error("cannot access \(path)")
            }
            return false
        }
    }

    /// Returns the number of bytes that an ordinary user can still write to the file system of a path.
    package static func freeSpace(_ path: String) throws -> Int { try freeSpaceAndFiles(path).bytes }

    /// Also returns how many files the file system can still have; nil if it has no limit of files.
    package static func freeSpaceAndFiles(_ path: String) throws -> (bytes: Int, files: Int?) {
        let facts: moult_statvfs
        do { facts = try Syscall.statvfs(path) } catch {
            throw error.error("cannot determine the free space at \(path)")
        }
        return (Int(facts.f_bavail) * Int(facts.f_frsize), facts.f_files == 0 ? nil : Int(facts.f_favail))
    }

    /// Returns whether an error means missing permission or a read-only file system.
    package static func isDenied(_ error: any Error) -> Bool {
        guard let code = (error as? MoultError)?.cause as? Errno else { return false }
        return code == .denied || code == .readOnly || code == Errno(EPERM)
    }

    package static func makeDirectory(_ path: String, mode: UInt32 = 0o755) throws {
        do { try Syscall.mkdir(path, mode) } catch {
            throw error.error("cannot create the directory \(path)", .name(path))
        }
    }

    /// Creates a directory if it does not exist.
    package static func ensureDirectory(_ path: String, mode: UInt32 = 0o755) throws {
        do { try Syscall.mkdir(path, mode) } catch {
            if error == .exists, try factsThroughLinks(path)?.kind == .directory { return }
            var failure = error.error("cannot create the directory \(path)", .name(path))
            if error == .noEntry { failure.now = "Create the parent directory first." }
            throw failure
        }
    }

    /// Creates a directory and its missing parent directories, like `mkdir -p`.
    package static func ensureDirectories(_ path: String, mode: UInt32 = 0o755) throws {
        let parent = directory(of: path)
        if parent != path, try factsThroughLinks(parent) == nil { try ensureDirectories(parent) }
        try ensureDirectory(path, mode: mode)
    }

    package static func rename(_ old: String, to new: String) throws {
        do { try Syscall.rename(old, new) } catch {
            throw error.error("cannot rename \(old) to \(new)", .name(old), .name(new))
        }
    }

    /// Renames a file unless the new name exists; returns whether it was renamed.
    package static func renameIfFree(_ old: String, to new: String) throws -> Bool {
        do {
            try Syscall.rename(old, new, MOULT_RENAME_NOREPLACE)
            return true
        } catch {
            if error == .exists || error == .notEmpty { return false }
            throw error.error("cannot rename \(old) to \(new)", .name(old), .name(new))
        }
    }

    /// Exchanges two names in one step: both exist at every moment.
    package static func exchange(_ one: String, _ other: String) throws {
        try SystemFeatures.requireExchange(one, other)
        do { try Syscall.rename(one, other, MOULT_RENAME_EXCHANGE) } catch {
            throw error.error("cannot exchange \(one) and \(other)", .name(one), .name(other))
        }
    }

    package static func symlink(to target: String, at path: String) throws {
        do { try Syscall.symlink(target, path) } catch {
            throw error.error("cannot create the link \(path)", .name(path))
        }
    }

    package static func hardLink(_ old: String, at path: String) throws {
        do { try Syscall.link(old, path) } catch { throw error.error("cannot link \(old) to \(path)", .name(path)) }
    }

    /// Removes a file or symlink, if it exists.
    package static func remove(_ path: String) throws {
        do { try Syscall.unlink(path) } catch {
            if error == .noEntry { return }
            throw error.error("cannot remove \(path)", .name(path))
        }
    }

    /// Gives a file a second name; returns false if the system does not allow that, for example across file systems or for a
    /// file of another user.
    package static func hardLinkIfPossible(_ old: String, at path: String) throws -> Bool {
        do {
            try Syscall.link(old, path)
            return true
        } catch {
            if error.isOne(of: EPERM, EACCES, EMLINK, EXDEV, EOPNOTSUPP, ENOSYS) { return false }
            throw error.error("cannot link \(old) to \(path)")
        }
    }

    package static func setMode(_ path: String, _ mode: UInt32) throws {
        do { try Syscall.chmod(path, mode) } catch { throw error.error("cannot set the mode of \(path)") }
    }

    /// Removes an empty directory.
    package static func removeEmpty(_ path: String) throws {
        do { try Syscall.rmdir(path) } catch { throw error.error("cannot remove the directory \(path)") }
    }

    /// Syncs the names in a directory: a rename or a new file survives a power failure only after this.
    package static func syncDirectory(_ path: String) throws {
        let directory = try Descriptor(path, .directory)
        try directory.sync()
        try directory.close()
    }

    /// Writes a new file and syncs its content; the name is durable only after `syncDirectory`.
    package static func writeNew(_ bytes: [UInt8], to path: String, mode: UInt32 = 0o644) throws {
        let file = try Descriptor(path, .create, mode: mode)
        // Sets the mode independently of the umask.
        try file.setMode(mode)
        try file.write(bytes)
        try file.sync()
        try file.close()
    }

    /// Syncs the content and the attributes of a file, so that they survive a power failure.
    package static func syncFile(_ path: String) throws {
        let file = try Descriptor(path, .record)
        try file.sync()
        try file.close()
    }

    /// Gives a file its final mode, and syncs content, mode and change time.
    package static func seal(_ path: String, mode: UInt32) throws {
        let file = try Descriptor(path, .record)
        try file.setMode(mode)
        try file.sync()
        try file.close()
    }

    /// Replaces a file that has other names as well (hard links, as `cp -al` creates them) with a copy, so that data appended
    /// through this name does not appear under the other names.
    package static func detach(_ path: String) throws {
        guard let found = try facts(path), found.kind == .file, found.links > 1 else { return }
        let temporary = staged(path)
        try remove(temporary)
        try copy(path, to: temporary, mode: found.mode)
        try syncFile(temporary)
        try rename(temporary, to: path)
        try syncDirectory(directory(of: path))
    }

    /// Returns the path's directory: `a/b` for `a/b/c`.
    package static func directory(of path: String) -> String {
        guard let slash = path.lastSlash else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns the last component of a path.
    package static func name(of path: String) -> String { path.pathParts().last.map { String($0) } ?? path }

    /// Returns the path with all symlinks resolved.
    package static func resolved(_ path: String) throws -> String {
        guard let real = realpath(path, nil) else { throw Errno(moult_errno()).error("cannot find \(path)") }
        defer { free(real) }
        return try OutsideText.path(real, "the real path of \(path)")
    }

    /// Returns the path with all symlinks resolved; nil if it cannot be resolved, or if its real path is not valid UTF-8.
    package static func resolvedIfFound(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return OutsideText.valid(real)
    }

    /// Returns the path with all symlinks resolved; unchanged if nothing exists there, because opening the file reports that.
    package static func resolvedIfThere(_ path: String) -> String { resolvedIfFound(path) ?? path }

    /// Returns a path relative to the working directory as an absolute path; symlinks are not resolved.
    package static func absolute(_ path: String) throws -> String {
        if path.isAbsolutePath { return path }
        guard let buffer = getcwd(nil, 0) else {
            throw Errno(moult_errno()).error("cannot determine the working directory")
        }
        defer { free(buffer) }
        let here = try OutsideText.path(
            buffer, "the name of the working directory",
            now: "Rename it, or run the command in another directory, with absolute paths.")
        var rest = Substring(path)
        while rest.hasPrefix("./") { rest = rest.dropFirst(2).drop { $0 == "/" } }
        return rest.isEmpty || rest == "." ? here : "\(here == "/" ? "" : here)/\(rest)"
    }
}
