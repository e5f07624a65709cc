import MoultBasics
package import MoultFiles

/// The first 100 bytes of a SQLite database file, as stored on disk. While a WAL has frames that are not checkpointed, SQLite
/// sees newer values.
package struct DatabaseHeader: Equatable, Sendable {
    package static let byteCount = 100
    /// The offsets of the change counter, and of its copy, which shows that the page count is valid.
    package static let changeCounterOffsets = [24, 92]

    private static let magic = "SQLite format 3\0".utf8

    /// Returns whether a file with these first bytes is a database: 16 bytes are enough.
    package static func begins(_ bytes: some Sequence<UInt8>) -> Bool { bytes.starts(with: magic) }

    package enum TextEncoding: UInt32, Sendable, CaseIterable, CustomStringConvertible {
        case utf8 = 1
        case utf16LittleEndian = 2
        case utf16BigEndian = 3

        /// The name that `PRAGMA encoding` reports.
        package var description: String {
            switch self {
            case .utf8: "UTF-8"
            case .utf16LittleEndian: "UTF-16le"
            case .utf16BigEndian: "UTF-16be"
            }
        }

        var isUTF16: Bool { self != .utf8 }
    }

    package var pageSize: Int
    /// 1: rollback journal, 2: WAL.
    package var writeVersion: UInt8
    package var readVersion: UInt8
    package var changeCounter: UInt32
    /// The number of pages; valid only if `hasPageCount`, because SQLite before 3.7 did not write it.
    package var pageCount: UInt32
    /// The text encoding; nil if nothing was created in the database yet.
    package var encoding: TextEncoding?
    package var userVersion: Int32
    package var applicationID: Int32
    /// The change counter when `pageCount` was written.
    package var versionValidFor: UInt32

    package var isWAL: Bool { readVersion == 2 }
    package var hasPageCount: Bool { pageCount > 0 && versionValidFor == changeCounter }

    /// Parses the header at the start of a file's bytes; `path` is for errors.
    package init(_ bytes: UnsafeRawBufferPointer, path: String) throws {
        func reject(_ why: String) -> MoultError {
            MoultError(.databaseCorrupt, what: "\(path) is not a SQLite database", why: why)
        }
        guard bytes.count >= Self.byteCount else { throw reject("the file has only \(counted(bytes.count, "byte"))") }
        guard Self.begins(bytes) else { throw reject("it does not start with the header of a SQLite database") }
        func number(_ offset: Int) -> UInt32 {
            UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        let size = Int(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt16.self)))
        pageSize = size == 1 ? 65536 : size
        guard pageSize >= 512, pageSize & (pageSize - 1) == 0 else {
            throw reject("its header has the invalid page size \(pageSize)")
        }
        writeVersion = bytes[18]
        readVersion = bytes[19]
        guard (1...2).contains(readVersion), (1...2).contains(writeVersion) else {
            throw reject("its header has file format \(writeVersion)/\(readVersion), and SQLite knows 1 and 2")
        }
        // SQLite rejects any other values too.
        guard bytes[21] == 64, bytes[22] == 32, bytes[23] == 32 else {
            throw reject("its header has payload fractions that no version of SQLite writes")
        }
        changeCounter = number(24)
        pageCount = number(28)
        userVersion = Int32(bitPattern: number(60))
        applicationID = Int32(bitPattern: number(68))
        versionValidFor = number(92)
        encoding = TextEncoding(rawValue: number(56))
        if encoding == nil, number(56) != 0 { throw reject("its header has the unknown text encoding \(number(56))") }
    }

    /// Throws unless the file's size matches the page count in the header.
    package func requireSize(_ fileSize: Int64, path: String) throws {
        func reject(_ why: String) -> MoultError {
            MoultError(.databaseCorrupt, what: "\(path) is not a complete SQLite database", why: why)
        }
        guard hasPageCount else {
            if fileSize % Int64(pageSize) == 0 { return }
            throw reject("its \(fileSize) bytes are not a multiple of the page size \(pageSize)")
        }
        if fileSize != expectedSize { throw reject(mismatch(fileSize)) }
    }

    /// Apps can make SQLite extend files in steps, which leaves unused bytes at the end (SQLITE_FCNTL_CHUNK_SIZE).
    private static let slack: Int64 = 64 << 20

    private var expectedSize: Int64 { Int64(pageCount) * Int64(pageSize) }

    private func mismatch(_ fileSize: Int64) -> String {
        "the file has \(fileSize) bytes, and its header says \(pageCount) pages of \(pageSize) bytes, which is \(expectedSize)"
    }
}

extension DatabaseHeader {
    /// Reads the header of a file that only this process uses, and checks that the file's size matches its page count. **Never
    /// use this for a file that this process has open through SQLite:** POSIX locks belong to the process and the inode. Closing
    /// any other descriptor of the file drops SQLite's locks on it, and another process may then write in the middle of this
    /// process's transaction (sqlite.org/howtocorrupt.html, 2.2). For such a file use `Connection.header()`.
    package init(ofOwnFile path: String) throws {
        let file = try Descriptor(path, .read)
        try self.init(of: file)
        try file.close()
    }

    /// Returns whether a file that this process does not have open is a database in WAL mode. Its sidecars are not examined.
    package static func isWAL(unopened path: String) throws -> Bool {
        do { return try DatabaseHeader(ofOwnFile: path).isWAL } catch let error as MoultError
            where error.code == .databaseCorrupt
        { return false }
    }

    /// Throws if a file has a database at its beginning, and much more than the pages in its header: SQLite ignores those bytes, but to
    /// read a hole of terabytes takes hours. Reads nothing but the header. A database with a WAL is not refused, because a part of
    /// its pages, or a smaller size, may still be in the WAL.
    package static func requireNoExcess(at path: String) throws {
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file, Int64(facts.size) > slack,
            (try Sidecars.of(path).wal?.facts.size ?? 0) == 0
        else { return }
        let header: DatabaseHeader
        do { header = try Connection.header(ofFileAt: path) } catch let error as MoultError
            where error.code == .databaseCorrupt
        { return }
        guard header.hasPageCount, Int64(facts.size) - header.expectedSize > slack else { return }
        throw MoultError(
            .databaseCorrupt, what: "\(path) is not a complete SQLite database",
            why: header.mismatch(Int64(facts.size)),
            now: "Restore a backup, or copy its content to a new file: "
                + "\(run: ["sqlite3", path, "VACUUM INTO 'copy.db'"])")
    }

    /// Returns whether two files without sidecars are databases with the same content: all pages are equal, apart from the fields of
    /// the header that follow from the journal mode and the number of commits. Also true for two equal files of any kind.
    package static func haveSameContent(_ one: String, _ other: String) throws -> Bool {
        try Files.haveSameBytes(one, other, except: [18..<20, 24..<28, 40..<44, 92..<100])
    }

    /// Puts a private copy of a database, which has no sidecars, into rollback mode. SQLite itself cannot do so if the schema is
    /// damaged.
    package static func setRollbackMode(ofCopy path: String) throws {
        let file = try Descriptor(path, .write)
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
        if count == 20, begins(bytes), bytes[18...] == [2, 2] {
            try [UInt8](repeating: 1, count: 2).withUnsafeBytes { try file.write($0, at: 18) }
        }
        try file.close()
    }

    /// Reads the header through a descriptor, which stays open, and checks that the file's size matches its page count.
    package init(of file: borrowing Descriptor) throws {
        let facts = try file.facts()
        guard facts.kind == .file else {
            throw MoultError(
                .databaseCorrupt, what: "\(file.path) is not a SQLite database", why: "it is not a regular file")
        }
        var count = 0
        let bytes = try withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 1) { buffer in
            while count < buffer.count {
                let more = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]), at: count)
                if more == 0 { break }
                count += more
            }
            return Array(buffer[..<count])
        }
        let path = file.path
        self = try bytes.withUnsafeBytes { try DatabaseHeader($0, path: path) }
        try requireSize(Int64(facts.size), path: path)
    }
}
