import Glibc
import MoultBasics

extension DatabaseHeader {
    /// Reads the header of a file that is ours alone, and checks that its pages are the whole file.
    ///
    /// **Never for a file that this process has open through SQLite:** POSIX locks belong to the process and the inode,
    /// so closing any other descriptor of the file drops SQLite's locks on it, and another process may write in the
    /// middle of our transaction (sqlite.org/howtocorrupt.html, 2.2). For such a file ask `Connection.header()`.
    package init(ofOwnFile path: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw Self.systemError("open", path) }
        // Nothing was written, so closing has nothing to report.
        defer { close(descriptor) }
        try self.init(descriptor: descriptor, path: path)
    }

    /// Reads the header through a descriptor, which stays open, and checks that its pages are the whole file.
    package init(descriptor: Int32, path: String) throws {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.systemError("examine", path) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw MoultError(
                .databaseCorrupt, what: "\(path) is not a SQLite database", why: "it is not a regular file")
        }
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count, off_t(count))
            }
            if more < 0, errno == EINTR { continue }
            guard more >= 0 else { throw Self.systemError("read", path) }
            if more == 0 { break }
            count += more
        }
        self = try bytes[..<count].withUnsafeBytes { try DatabaseHeader($0, path: path) }
        try requireSize(Int64(status.st_size), path: path)
    }

    private static func systemError(_ verb: String, _ path: String) -> MoultError {
        MoultError(.system, what: "cannot \(verb) \(path)", why: strerror(errno).map { String(cString: $0) })
    }
}
