internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// A path below a store's directory `.moult`, which system calls reach without following symlinks.
///
/// moult creates all files there and chooses their names. A symlink in place of a directory was therefore planted, and may lead
/// to files of another user or program. Every function of `Syscall` that opens, creates, renames or removes a file by its path
/// goes through `reach` or `open`, so that callers cannot forget this. Only `.moult` itself and its parent directories may be
/// symlinks, created by the operator.
struct StorePath {
    /// The path of `.moult` itself.
    let directory: Substring
    /// The components below `.moult`: one or more, without `..`.
    let names: [Substring]

    /// Returns nil for a path that is not below such a directory.
    init?(_ path: String) throws(Errno) {
        // Most paths are not below `.moult`, and this check runs before every system call with a path.
        guard let end = Self.end(path) else { return nil }
        directory = path[..<end]
        names = path[end...].pathParts().filter { $0 != "." }
        if names.isEmpty { return nil }
        if names.contains("..") { throw .loop }
    }

    /// Returns the end of the last `.moult` in the path that has something below it; nil if the path has none. Compares bytes,
    /// because the standard library searches for characters slowly.
    private static func end(_ path: String) -> String.Index? {
        var text = path
        let end = text.withUTF8 { bytes in
            var slash = bytes.count - 1
            while slash >= mark.count {
                if bytes[slash] == mark[0], mark.indices.allSatisfy({ bytes[slash - mark.count + $0] == mark[$0] }) {
                    return slash
                }
                slash -= 1
            }
            return 0
        }
        return end == 0 ? nil : path.utf8.index(path.startIndex, offsetBy: end)
    }

    private static let mark = Array("/.moult".utf8)

    // MARK: reaching

    /// Calls `body` with a directory and a path in it: the parent and last component of a path below `.moult`, otherwise the
    /// working directory and the path itself.
    static func reach<R>(
        _ path: String, _ body: (_ directory: Int32, _ name: UnsafePointer<CChar>) throws(Errno) -> R
    ) throws(Errno) -> R {
        guard let place = try StorePath(path) else { return try start(path, body) }
        let root = PinnedDirectory.of(place.directory)
        guard let last = place.names.last, place.names.count > 1 else {
            // The name is directly in `.moult`.
            guard let root, let name = place.names.last else { return try start(path, body) }
            return try named(String(name)) { p throws(Errno) in try body(root.number, p) }
        }
        let parent = try place.parent().open(from: root, O_DIRECTORY | SystemFeatures.pathOnly, 0, isParent: true)
        defer { _ = MoultLibc.close(parent) }
        return try named(String(last)) { p throws(Errno) in try body(parent, p) }
    }

    /// Opens a path. Below `.moult`, a symlink is followed only if it is the last component, is in a generation, and
    /// `followsLast` is set.
    static func open(_ path: String, _ flags: Int32, _ mode: mode_t, followsLast: Bool) throws(Errno) -> Int32 {
        guard let place = try StorePath(path) else { return try plain(path, flags, mode) }
        do { return try place.open(from: PinnedDirectory.of(place.directory), flags, mode) } catch {
            guard error == .loop, followsLast, place.isInGeneration else { throw error }
            return try reach(path) { directory, name throws(Errno) in
                try Syscall.answer(moult_openat(directory, name, flags | O_CLOEXEC, mode))
            }
        }
    }

    /// Whether the path is in a generation, which has symlinks to files that stay at the operator's location (`"place":
    /// "in-place"`).
    private var isInGeneration: Bool {
        ["generations", "current"].contains(names.first) || names.dropLast().contains("generation")
    }

    private func parent() -> StorePath { StorePath(directory: directory, names: names.dropLast()) }

    private init(directory: Substring, names: some Sequence<Substring>) {
        (self.directory, self.names) = (directory, Array(names))
    }

    /// `isParent` means that the path is followed by the name of a file.
    private func open(
        from root: PinnedDirectory?, _ flags: Int32, _ mode: mode_t, isParent: Bool = false
    ) throws(Errno) -> Int32 {
        let names = names.count > 1 || isParent ? try resolvingCurrent(from: root) : names
        let below = names.joined(separator: "/")
        if let root { return try Self.beneath(root.number, below, flags, mode) }
        let path = "\(directory)/\(below)"
        do {
            return try Self.start(path) { directory, rest throws(Errno) in
                try Self.openWithOpenat2(directory, String(cString: rest), flags, mode)
            }
        } catch {
            // A parent directory may be a symlink, or the kernel may not support `openat2`.
            guard [.loop, .unknownCall, .notPermitted].contains(error) else { throw error }
        }
        let root = try Self.plain(String(directory), O_DIRECTORY | SystemFeatures.pathOnly, 0)
        defer { _ = MoultLibc.close(root) }
        return try Self.beneath(root, below, flags, mode)
    }

    /// Returns the components with `current` replaced by its target, which must be a generation. moult creates no other symlink
    /// directly in `.moult`.
    private func resolvingCurrent(from root: PinnedDirectory?) throws(Errno) -> [Substring] {
        guard names.first == "current" else { return names }
        let target =
            if let root { try Self.target(root.number, "current") } else {
                try Self.start("\(directory)/current") { directory, rest throws(Errno) in
                    try Self.target(directory, String(cString: rest))
                }
            }
        let words = target.pathParts(keepingEmpty: true)
        guard words.count == 2, words[0] == "generations", !words[1].isEmpty, !words[1].hasPrefix(".") else {
            throw .loop
        }
        return words + names.dropFirst()
    }

    private static func target(_ directory: Int32, _ name: String) throws(Errno) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = try Syscall.answer(MoultLibc.readlinkat(directory, name, &buffer, buffer.count))
        return try Syscall.text(buffer[..<count].map { UInt8(bitPattern: $0) })
    }

    /// Returns the first symlink below `.moult` on a path, if any. Affects only the wording of errors.
    static func plantedLink(in path: String) -> String? {
        guard let place = try? StorePath(path) else { return nil }
        for count in place.names.indices {
            let path = "\(place.directory)/\(place.names[...count].joined(separator: "/"))"
            // The error that is being reported is about the same path.
            guard let facts = try? Syscall.lstat(path) else { return nil }
            // moult's own pointer to the installed generation is a symlink as well.
            if FileFacts(facts).kind == .link, place.names[...count] != ["current"] { return path }
        }
        return nil
    }

    // MARK: system calls

    private static func beneath(_ root: Int32, _ path: String, _ flags: Int32, _ mode: mode_t) throws(Errno) -> Int32 {
        do { return try openWithOpenat2(root, path, flags, mode) } catch {
            // `openat2` is missing before Linux 5.6, and blocked in some containers.
            guard error == .unknownCall || error == .notPermitted else { throw error }
            return try walk(root, path, flags, mode)
        }
    }

    /// Opens a path with `openat2`, without following symlinks.
    private static func openWithOpenat2(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: mode_t)
        throws(Errno)
        -> Int32
    {
        // struct open_how: flags, mode, resolve. The kernel requires mode 0 if nothing is created.
        let how: [UInt64] = [
            UInt64(UInt32(bitPattern: flags | O_CLOEXEC)), flags & O_CREAT == 0 ? 0 : UInt64(mode),
            noMagicLinks | noLinks | (directory == AT_FDCWD ? 0 : beneath),
        ]
        return Int32(
            try Syscall.answer(
                path.withCString { path in
                    how.withUnsafeBytes { how in
                        moult_syscall(
                            openat2, Int(directory), Int(bitPattern: path), Int(bitPattern: how.baseAddress), how.count)
                    }
                }))
    }

    private static let openat2 = 437
    private static let (noMagicLinks, noLinks, beneath): (UInt64, UInt64, UInt64) = (0x02, 0x04, 0x08)

    /// Opens the path component by component, without `openat2`.
    private static func walk(_ root: Int32, _ path: String, _ flags: Int32, _ mode: mode_t) throws(Errno) -> Int32 {
        var here = try Syscall.answer(fcntlDuplicate(root))
        defer { _ = MoultLibc.close(here) }
        let names = path.pathParts().map { String($0) }
        for name in names.dropLast() {
            let next = try unlinked(here, name, O_DIRECTORY | SystemFeatures.pathOnly, 0)
            _ = MoultLibc.close(here)
            here = next
        }
        return try unlinked(here, names.last ?? ".", flags, mode)
    }

    /// Opens one component, which must not be a symlink. With O_DIRECTORY, the kernel reports a symlink as ENOTDIR, which is
    /// changed to ELOOP here.
    private static func unlinked(_ directory: Int32, _ name: String, _ flags: Int32, _ mode: mode_t) throws(Errno)
        -> Int32
    {
        do { return try plain(directory, name, flags | O_NOFOLLOW, mode) } catch {
            var facts = moult_stat()
            guard error == .notADirectory, fstatat(directory, name, &facts, AT_SYMLINK_NOFOLLOW) == 0,
                facts.st_mode & S_IFMT == S_IFLNK
            else { throw error }
            throw .loop
        }
    }

    private static func fcntlDuplicate(_ descriptor: Int32) -> Int32 { moult_fcntl_int(descriptor, F_DUPFD_CLOEXEC, 0) }

    private static func plain(_ path: String, _ flags: Int32, _ mode: mode_t) throws(Errno) -> Int32 {
        try start(path) { directory, path throws(Errno) in
            try Syscall.answer(moult_open_file(directory, path, flags | O_CLOEXEC, mode))
        }
    }

    /// Calls `body` with the starting directory of a path, which is a pinned directory or the working directory, and with the
    /// rest of the path.
    private static func start<R>(
        _ path: String, _ body: (_ directory: Int32, _ rest: UnsafePointer<CChar>) throws(Errno) -> R
    ) throws(Errno) -> R {
        guard let (directory, rest) = PinnedDirectory.above(path) else {
            return try named(path) { p throws(Errno) in try body(AT_FDCWD, p) }
        }
        return try named(rest) { p throws(Errno) in try body(directory.number, p) }
    }

    private static func plain(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: mode_t) throws(Errno) -> Int32
    {
        try Syscall.answer(moult_open_file(directory, path, flags | O_CLOEXEC, mode))
    }

    private static func named<R>(_ path: String, _ body: (UnsafePointer<CChar>) throws(Errno) -> R) throws(Errno) -> R {
        let result: Result<R, Errno> = path.withCString { path in
            do throws(Errno) { return .success(try body(path)) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
