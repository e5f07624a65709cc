import CSQLite
import MoultBasics
import MoultFiles

extension Connection {
    /// Returns the header of the file on disk, read through SQLite's own descriptor, so that no lock is lost.
    package func header() throws -> DatabaseHeader {
        let file = try file
        var bytes = [UInt8](repeating: 0, count: DatabaseHeader.byteCount)
        let size = Int(min(try fileSize(), Int64(bytes.count)))
        if size > 0 {
            let code = bytes.withUnsafeMutableBytes {
                file.pointee.pMethods?.pointee.xRead?(file, $0.baseAddress, Int32(size), 0) ?? SQLITE_MISUSE
            }
            try check(code, doing: "read the header of \(path)")
        }
        return try bytes[..<size].withUnsafeBytes { try DatabaseHeader($0, path: path) }
    }

    /// Returns the header of a database file that may be in use. Opening a connection reads nothing else and takes no lock.
    package static func header(ofFileAt path: String) throws -> DatabaseHeader {
        let connection = try Connection(path: path, access: .readOnlySharedMemory)
        let header = try connection.header()
        try connection.close()
        return header
    }

    /// Returns whether a database file is in WAL mode; false for a file that is not a database.
    package static func isWAL(ofFileAt path: String) throws -> Bool {
        do { return try header(ofFileAt: path).isWAL } catch let error as MoultError
            where error.code == .databaseCorrupt
        { return false }
    }

    /// Returns the text encoding of a database file that may be in use; nil if the file does not exist, or if nothing was
    /// created in the database yet.
    package static func encoding(ofFileAt path: String) throws -> DatabaseHeader.TextEncoding? {
        try Files.factsThroughLinks(path) == nil ? nil : header(ofFileAt: path).encoding
    }

    /// Returns the size of the file, without its WAL; SQLite reports 0 for a file of 1 byte.
    package func fileSize() throws -> Int64 {
        let file = try file
        var size: sqlite3_int64 = 0
        try check(file.pointee.pMethods?.pointee.xFileSize?(file, &size) ?? SQLITE_MISUSE, doing: "examine \(path)")
        return size
    }

    /// Throws if the file is shorter or longer than its header says, unless rows are in a `-wal`.
    package func requireSize() throws {
        func require() throws {
            let header = try header()
            if try header.isWAL && (Sidecars.of(path).wal?.facts.size ?? 0) > 0 { return }
            try header.requireSize(fileSize(), path: path)
        }
        do { try require() } catch is MoultError {
            // A process that commits extends the file before it writes the header, so both are read again under a lock.
            _ = try header()
            try withStatement("PRAGMA schema_version") { row in
                _ = try row.step()
                try require()
            }
        }
    }

    /// Copies the file on disk into a new one through SQLite's own descriptor, so that no lock is lost. Only for a database
    /// that the caller holds locked and that has no sidecars.
    package func copyFile(to copy: String) throws {
        let (file, size) = (try file, try fileSize())
        let target = try Descriptor(copy, .create, mode: 0o600)
        try withUnsafeTemporaryAllocation(byteCount: 1 << 20, alignment: 16) { buffer in
            var offset: Int64 = 0
            while offset < size {
                let count = Int(min(Int64(buffer.count), size - offset))
                let code = file.pointee.pMethods?.pointee.xRead?(file, buffer.baseAddress, Int32(count), offset)
                try check(code ?? SQLITE_MISUSE, doing: "read \(path)")
                try target.write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
                offset += Int64(count)
            }
        }
        try target.close()
    }

    /// Copies a database in rollback mode into a new file, byte for byte, under SQLite's shared lock: nothing changes the file
    /// meanwhile. Returns false if the file has other pages than its header says, or none, or has become another file.
    package func copyLockedFile(to copy: String, copied: (_ bytes: Int, _ total: Int) throws -> Void) throws -> Bool {
        try execute("BEGIN; SELECT count(*) FROM sqlite_schema")
        let result = Result {
            let (header, size) = (try header(), try fileSize())
            guard !header.isWAL, !header.hasPageCount || size == Int64(header.pageCount) * Int64(header.pageSize) else {
                return false
            }
            // The descriptor stays open for SQLite's next open of the file, as long as this connection has its lock.
            let source = try Descriptor(path, .read)
            guard try !hasMoved() else { return false }
            try Files.copy(source, to: copy, mode: 0o600) { try copied($0, Int(size)) }
            return true
        }
        try execute("COMMIT")
        return try result.get()
    }

    /// Returns whether the path of the open file names another file, or none.
    private func hasMoved() throws -> Bool {
        var moved: Int32 = 0
        let code = try sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
        try check(code, doing: "examine \(path)")
        return moved != 0
    }

    /// Whether nothing is in the database: SQLite reads it as it reads a file of 0 bytes.
    package var hasNoContent: Bool {
        get throws {
            try int("SELECT count(*) FROM sqlite_schema") == 0 && int("PRAGMA user_version") == 0
                && int("PRAGMA application_id") == 0
        }
    }

    /// Cuts a database without content to 0 bytes. The caller has SQLite's exclusive lock on it, in rollback mode.
    package func truncateEmptyFile() throws {
        guard try hasNoContent else { return }
        let file = try file
        guard let methods = file.pointee.pMethods?.pointee else { return }
        try check(methods.xTruncate(file, 0), doing: "truncate \(path)")
        try check(methods.xSync(file, SQLITE_SYNC_NORMAL), doing: "sync \(path)")
    }

    var file: UnsafeMutablePointer<sqlite3_file> {
        get throws {
            let handle = try handle
            var file: UnsafeMutablePointer<sqlite3_file>?
            let code = withUnsafeMutablePointer(to: &file) {
                sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, $0)
            }
            try check(code, doing: "examine \(path)")
            guard let file, file.pointee.pMethods != nil else {
                throw MoultError(.databaseRequest, what: "`main` of \(path) is not a file")
            }
            return file
        }
    }
}
