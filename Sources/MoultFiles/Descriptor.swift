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
        let (flags, need): (Int32, Permission) =
            switch access {
            case .read, .record: (O_RDONLY | O_NONBLOCK, .read(path))
            case .unlinked: (O_RDONLY | O_NONBLOCK | O_NOFOLLOW, .read(path))
            case .stream: (O_RDONLY, .read(path))
            case .write: (O_RDWR, .write(path))
            case .create: (O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, .name(path))
            case .append: (O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, .write(path))
            case .directory: (O_RDONLY | O_DIRECTORY, .read(path))
            case .lock: (O_RDWR | O_CREAT | O_NOFOLLOW, .write(path))
            case .name: (SystemFeatures.pathOnly | O_NOFOLLOW, .read(path))
            }
        self.path = path
        do {
            handle = Handle(number: try Syscall.open(path, flags, mode, followsLast: access == .read))
        } catch { throw error.error("cannot \(access == .create ? "create" : "open") \(path)", need) }
    }

    /// Takes ownership of an open descriptor.
    init(owning number: Int32, _ path: String) {
        self.handle = Handle(number: number)
        self.path = path
    }

    /// Returns the names in this directory as bytes, which need not be UTF-8, sorted.
    borrowing func names() throws -> [[UInt8]] {
        let again: Int32
        // Listing needs a separate descriptor, positioned at the beginning.
        do { again = try Syscall.open(".", in: number, O_RDONLY | O_DIRECTORY) } catch {
            throw error.error("cannot list \(path)")
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
        do { return FileFacts(try Syscall.fstat(number)) } catch { throw error.error("cannot stat \(path)") }
    }

    /// Reads into the buffer and returns the number of bytes read: 0 at the end of the file.
    package borrowing func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        do { return try Syscall.read(number, buffer) } catch { throw error.error("cannot read \(path)") }
    }

    package borrowing func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
        do { return try Syscall.pread(number, buffer, offset) } catch { throw error.error("cannot read \(path)") }
    }

    /// Fills the buffer from an offset on. Returns the number of bytes, which is smaller at the end of the file.
    package borrowing func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
        var done = 0
        while done < buffer.count {
            let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]), at: offset + done)
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Writes all bytes: at an offset, or at the current position of the file.
    package borrowing func write(_ buffer: UnsafeRawBufferPointer, at offset: Int? = nil) throws {
        do { try Syscall.writeAll(number, buffer, at: offset) } catch { throw error.error("cannot write \(path)") }
    }

    package borrowing func write(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

    /// Syncs the file's content to disk, so that it survives a power failure.
    package borrowing func sync() throws {
        do { try Syscall.fsync(number) } catch { throw error.error("cannot sync \(path)") }
    }

    /// Starts to write this range to disk, so that a later `sync` takes less time.
    package borrowing func startWriteback(at offset: Int, count: Int) throws {
        do { try Syscall.startWriteback(number, offset, count) } catch { throw error.error("cannot write \(path)") }
    }

    package borrowing func setMode(_ mode: UInt32) throws {
        do { try Syscall.fchmod(number, mode) } catch { throw error.error("cannot set the mode of \(path)") }
    }

    package borrowing func truncate(to size: Int) throws {
        do { try Syscall.ftruncate(number, size) } catch { throw error.error("cannot resize \(path)") }
    }
}

/// Creates in-memory files from which programs are executed. Once such a file is sealed, no process can change it.
package enum MemoryFile {
    package static func make() throws -> Int32 {
        guard SystemFeatures.startsPrograms else {
            throw SystemFeatures.unavailable("cannot run a program", because: "cannot start other programs")
        }
        return try checked(moult_memfd_sealable())
    }

    /// Returns a file that cannot be sealed.
    static func makeOpen() throws -> Int32 { try checked(moult_memfd()) }

    private static func checked(_ number: Int32) throws -> Int32 {
        guard number >= 0 else { throw Errno(moult_errno()).error("cannot create a file in memory") }
        return number
    }

    /// Writes all bytes: at an offset, or at the file's current position.
    package static func write(_ bytes: UnsafeRawBufferPointer, to number: Int32, at offset: Int? = nil) throws {
        do { try Syscall.writeAll(number, bytes, at: offset) } catch {
            throw error.error("cannot write to a file in memory")
        }
    }

    package static func seal(_ number: Int32, of path: String) throws {
        guard moult_seal_memfd(number) == 0 else { throw Errno(moult_errno()).error("cannot seal a copy of \(path)") }
    }
}

/// Open files that a process shares with a child process: `Subprocess.Command.files`.
extension Descriptor {
    /// Returns an in-memory file of this size, filled with zeros.
    package static func inMemory(size: Int) throws -> Descriptor {
        let file = Descriptor(owning: try MemoryFile.makeOpen(), "a file in memory")
        try file.truncate(to: size)
        return file
    }

    /// Returns one of the `Subprocess.Command.files` that this process was started with; the first has index 0.
    package static func inherited(_ index: Int, _ path: String) -> Descriptor {
        Descriptor(owning: Int32(3 + index), path)
    }

    /// Maps the beginning of the file until this process ends; writes to the mapping go to the file.
    package borrowing func mapForWriting(size: Int) throws -> UnsafeMutableRawBufferPointer {
        do { return UnsafeMutableRawBufferPointer(start: try Syscall.mapShared(number, size), count: size) } catch {
            throw error.error("cannot map \(path)")
        }
    }
}

/// An open file that several threads read.
package final class SharedFile: Sendable {
    package let descriptor: Descriptor
    package init(_ path: String) throws { descriptor = try Descriptor(path, .read) }
}

/// The content of an immutable file, mapped into memory without a copy.
///
/// The pages belong to the system, which reclaims them under memory pressure.
package struct MappedFile: ~Copyable {
    private let start: UnsafeMutableRawPointer
    private let size: Int

    /// The alignment that mapped parts of a file need, large enough for every supported machine.
    package static let alignment = 1 << 16

    /// Maps a non-empty part of a file. With a `split`, the content after that offset comes first, then zeros up to the next
    /// multiple of `alignment`, then the content before the offset. The start of the part and `split` must be multiples of
    /// `alignment`.
    package init(_ file: borrowing Descriptor, _ part: Range<Int>, split: Int? = nil) throws {
        let middle = split ?? part.lowerBound
        let ahead = Self.roundedUp(part.upperBound - middle)
        let whole = split == nil ? part.count : ahead + middle - part.lowerBound
        size = whole
        do throws(Errno) {
            start =
                if let split { try Self.map(file.number, part, split: split, whole, ahead) } else {
                    try Syscall.map(file.number, at: nil, part.lowerBound, part.count)
                }
        } catch { throw error.error("cannot map \(file.path)") }
    }

    private static func map(
        _ number: Int32, _ part: Range<Int>, split: Int, _ whole: Int, _ ahead: Int
    ) throws(Errno) -> UnsafeMutableRawPointer {
        let start = try Syscall.map(-1, at: nil, 0, whole)
        do throws(Errno) {
            _ = try Syscall.map(number, at: start, split, part.upperBound - split)
            _ = try Syscall.map(number, at: start + ahead, part.lowerBound, split - part.lowerBound)
        } catch {
            // The first error is the one to report.
            try? Syscall.unmap(start, whole)
            throw error
        }
        return start
    }

    package static func roundedUp(_ size: Int) -> Int { (size + alignment - 1) / alignment * alignment }

    // A failure to unmap cannot be handled here.
    deinit { try? Syscall.unmap(start, size) }

    /// Calls `body` with the content, which is valid only during the call.
    package borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: start, count: size))
    }
}

/// Lets a caller stop loops that read, copy or compare whole files. A file can have a hole of terabytes, which takes hours to read.
package enum LongRead {
    @TaskLocal private static var isStopped: (@Sendable () -> Bool)?

    /// Runs the body. Its loops throw once `isStopped` returns true.
    package static func stopping<R>(if isStopped: @escaping @Sendable () -> Bool, _ body: () throws -> R) rethrows -> R
    {
        try $isStopped.withValue(isStopped, operation: body)
    }

    /// Throws if the caller wants to stop. Each of these loops calls this for every block.
    package static func check(_ path: String) throws {
        guard isStopped?() == true else { return }
        throw MoultError(.interrupted, what: "the reading of \(path) was stopped", now: "Run the command again.")
    }
}
