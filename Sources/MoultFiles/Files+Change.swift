internal import CLinux
internal import MoultBasics
internal import MoultLibc

extension Files {
    package static func makeDirectory(_ path: String, mode: UInt32 = 0o755) throws {
        try wrapped("cannot create the directory \(path)", .name(path)) { () throws(Errno) in
            try Syscall.mkdir(path, mode)
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
        try wrapped("cannot create the link \(path)", .name(path)) { () throws(Errno) in
            try Syscall.symlink(target, path)
        }
    }

    package static func hardLink(_ old: String, at path: String) throws {
        try wrapped("cannot link \(old) to \(path)", .name(path)) { () throws(Errno) in try Syscall.link(old, path) }
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
            let cannot = [EPERM, EACCES, EMLINK, EXDEV, EOPNOTSUPP, ENOSYS].map { Errno($0) }
            if cannot.contains(error) { return false }
            throw error.error("cannot link \(old) to \(path)")
        }
    }

    package static func setMode(_ path: String, _ mode: UInt32) throws {
        try wrapped("cannot set the mode of \(path)") { () throws(Errno) in try Syscall.chmod(path, mode) }
    }

    /// Removes an empty directory.
    package static func removeEmpty(_ path: String) throws {
        try wrapped("cannot remove the directory \(path)") { () throws(Errno) in try Syscall.rmdir(path) }
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
    package static func name(of path: String) -> String {
        path.pathParts().last.map { String($0) } ?? path
    }

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
