internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// An open file, closed exactly once: by `close()` or on deinitialization.
///
/// Every file that this package opens itself is one of these. If SQLite has the file open in this process, closing keeps the
/// descriptor for the next open, because the kernel would drop SQLite's locks (databases.c).
package struct Descriptor: ~Copyable {
    private let handle: Handle
    package let path: String
    package var number: Int32 { handle.number }

    // Not private: release builds inline its deinitializer into other modules, and the linker must find its symbol.
    struct Handle: ~Copyable {
        let number: Int32

        consuming func close() throws(Errno) {
            let number = self.number
            discard self
            try Syscall.close(number)
        }

        // An error from close matters only after writing, and writers call close().
        deinit { _ = moult_close_file(number) }
    }

    package enum Access: Sendable {
        /// Reads, without blocking on a FIFO.
        case read
        /// Reads, without blocking on a FIFO or following a symlink.
        case unlinked
        /// Reads a file that may be a pipe, and waits for its data.
        case stream
        /// Reads a file that moult created. Below a store's `.moult`, opening fails if the file is a symlink.
        case record
        case write
        /// Creates the file, which must not exist, without following symlinks.
        case create
        /// Appends; creates the file if it does not exist.
        case append
        case directory
        /// For locks: creates the file if it does not exist.
        case lock
        /// Refers to the file without opening it or following symlinks. Closing the descriptor drops none of this process's
        /// locks on the file.
        case name
    }

    package init(_ path: String, _ access: Access, mode: UInt32 = 0o600) throws {
        let flags: Int32 =
            switch access {
            case .read, .record: O_RDONLY | O_NONBLOCK
            case .unlinked: O_RDONLY | O_NONBLOCK | O_NOFOLLOW
            case .stream: O_RDONLY
            case .write: O_RDWR
            case .create: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
            case .append: O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW
            case .directory: O_RDONLY | O_DIRECTORY
            case .lock: O_RDWR | O_CREAT | O_NOFOLLOW
            case .name: SystemFeatures.pathOnly | O_NOFOLLOW
            }
        let verb = access == .create ? "create" : "open"
        let need: Permission =
            switch access {
            case .read, .unlinked, .stream, .record, .directory, .name: .read(path)
            case .write, .append, .lock: .write(path)
            case .create: .name(path)
            }
        let number = try wrapped("cannot \(verb) \(path)", need) { () throws(Errno) in
            try Syscall.open(path, flags, mode, followsLast: access == .read)
        }
        self.handle = Handle(number: number)
        self.path = path
    }

    /// Takes ownership of an open descriptor.
    init(owning number: Int32, _ path: String) {
        self.handle = Handle(number: number)
        self.path = path
    }

    /// Returns the names in this directory as bytes, which need not be UTF-8, sorted.
    borrowing func names() throws -> [[UInt8]] {
        let (number, path) = (self.number, self.path)
        // Listing needs a separate descriptor, positioned at the beginning.
        let again = try wrapped("cannot list \(path)") { () throws(Errno) in
            try Syscall.open(".", in: number, O_RDONLY | O_DIRECTORY)
        }
        return try Files.rawNames(consuming: again, path)
    }

    /// Opens a file; returns nil if it does not exist.
    package static func ifThere(_ path: String, _ access: Access) throws -> Descriptor? {
        do { return try Descriptor(path, access) } catch let error as MoultError {
            if (error.cause as? Errno) == .noEntry { return nil }
            throw error
        }
    }

    package consuming func close() throws {
        let path = self.path
        do { try handle.close() } catch { throw error.error("cannot close \(path)") }
    }

    package borrowing func facts() throws -> FileFacts {
        let (number, path) = (self.number, self.path)
        return try wrapped("cannot stat \(path)") { () throws(Errno) in FileFacts(try Syscall.fstat(number)) }
    }

    /// Reads into the buffer and returns the number of bytes read: 0 at the end of the file.
    package borrowing func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let (number, path) = (self.number, self.path)
        return try wrapped("cannot read \(path)") { () throws(Errno) in try Syscall.read(number, buffer) }
    }

    package borrowing func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
        let (number, path) = (self.number, self.path)
        return try wrapped("cannot read \(path)") { () throws(Errno) in try Syscall.pread(number, buffer, offset) }
    }

    package borrowing func write(_ buffer: UnsafeRawBufferPointer) throws {
        let (number, path) = (self.number, self.path)
        try wrapped("cannot write \(path)") { () throws(Errno) in
            var rest = buffer
            while !rest.isEmpty { rest = UnsafeRawBufferPointer(rebasing: rest[(try Syscall.write(number, rest))...]) }
        }
    }

    package borrowing func write(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

    package borrowing func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws {
        let (number, path) = (self.number, self.path)
        try wrapped("cannot write \(path)") { () throws(Errno) in
            var rest = buffer
            var offset = offset
            while !rest.isEmpty {
                let count = try Syscall.pwrite(number, rest, offset)
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                offset += count
            }
        }
    }

    /// Syncs the file's content to disk, so that it survives a power failure.
    package borrowing func sync() throws {
        let (number, path) = (self.number, self.path)
        try wrapped("cannot sync \(path)") { () throws(Errno) in try Syscall.fsync(number) }
    }

    /// Starts to write this range to disk, so that a later `sync` takes less time.
    package borrowing func startWriteback(at offset: Int, count: Int) throws {
        let (number, path) = (self.number, self.path)
        try wrapped("cannot write \(path)") { () throws(Errno) in try Syscall.startWriteback(number, offset, count) }
    }

    package borrowing func setMode(_ mode: UInt32) throws {
        let (number, path) = (self.number, self.path)
        try wrapped("cannot set the mode of \(path)") { () throws(Errno) in try Syscall.fchmod(number, mode) }
    }

    package borrowing func truncate(to size: Int) throws {
        let (number, path) = (self.number, self.path)
        try wrapped("cannot resize \(path)") { () throws(Errno) in try Syscall.ftruncate(number, size) }
    }
}
