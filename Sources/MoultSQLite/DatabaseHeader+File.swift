import MoultBasics
package import MoultFiles

extension DatabaseHeader {
    /// Reads the header of a file that only this process uses, and checks that the file's size matches its page count.
    ///
    /// **Never use this for a file that this process has open through SQLite:** POSIX locks belong to the process and the
    /// inode. Closing any other descriptor of the file drops SQLite's locks on it, and another process may then write in the
    /// middle of this process's transaction (sqlite.org/howtocorrupt.html, 2.2). For such a file use `Connection.header()`.
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

    /// Throws if a file has a database at its beginning, and much more than its pages. Reads nothing but the header. A database
    /// with a WAL is not refused, because a part of its pages, or a smaller size, may still be in the WAL.
    package static func requireNoExcess(at path: String) throws {
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file, Int64(facts.size) > slack,
            (try Sidecars.of(path).wal?.facts.size ?? 0) == 0
        else { return }
        let header: DatabaseHeader
        do { header = try Connection.header(ofFileAt: path) } catch let error as MoultError
            where error.code == .databaseCorrupt
        { return }
        try header.requireNoExcess(Int64(facts.size), path: path)
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
