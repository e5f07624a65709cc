import CSQLite
import MoultBasics
import MoultFiles

/// The environment of a connection: the base directory of relative names, the files that it may read or write, and the time. As a
/// SQLite VFS, it checks calls before it passes them to the system's VFS, so its rules also apply to files that SQL opens
/// (`ATTACH`, `VACUUM INTO`) and to every function that reads the time.
package final class SandboxVFS {
    /// The base directory of relative names.
    let directory: String
    /// Files below this directory may be written; all others are opened read-only, whatever was requested.
    let writable: String
    /// The fixed time in seconds since 1970; nil for the real time.
    package let clock: Int64?
    /// Returns whether a file outside `writable` may be opened; called with its full path.
    let mayRead: (String) -> Bool

    package private(set) var clockReads = 0
    package var refused: String?
    /// The databases outside `writable` that were opened.
    package private(set) var opened: Set<String> = []

    let name: String
    private let base: UnsafeMutablePointer<sqlite3_vfs>
    private let vfs: UnsafeMutablePointer<sqlite3_vfs>
    private let vfsName: UnsafeMutablePointer<CChar>

    package init(directory: String, writable: String, clock: Int64? = nil, mayRead: @escaping (String) -> Bool) throws {
        guard let base = sqlite3_vfs_find(nil) else {
            throw MoultError(.sqlite, what: "cannot set up file access for SQLite", why: "SQLite has no VFS")
        }
        (self.directory, self.writable, self.clock, self.mayRead) = (directory, writable, clock, mayRead)
        self.base = base
        vfs = .allocate(capacity: 1)
        vfs.initialize(to: base.pointee)
        // The address is unique as long as the VFS is registered.
        name = "moult-\(UInt(bitPattern: vfs))"
        let bytes = name.utf8CString
        vfsName = .allocate(capacity: bytes.count)
        vfsName.initialize(from: Array(bytes), count: bytes.count)
        vfs.pointee.pNext = nil
        vfs.pointee.zName = UnsafePointer(vfsName)
        vfs.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
        install()
        let code = sqlite3_vfs_register(vfs, 0)
        guard code == SQLITE_OK else {
            throw MoultError(.sqlite, what: "cannot set up file access for SQLite", why: "\(ResultCode(code))")
        }
    }

    deinit {
        // Fails only for NULL. A connection keeps its VFS alive, so the VFS is not in use.
        sqlite3_vfs_unregister(vfs)
        vfs.deallocate()
        vfsName.deallocate()
    }

    // The methods of the base VFS receive the base VFS as their argument, because they use its private data.
    private func install() {
        vfs.pointee.xOpen = { vfs, path, file, flags, outFlags in
            guard let here = SandboxVFS.of(vfs) else { return SQLITE_MISUSE }
            return here.open(path, file, flags, outFlags)
        }
        vfs.pointee.xDelete = { vfs, path, sync in
            guard let here = SandboxVFS.of(vfs) else { return SQLITE_MISUSE }
            // SQLite deletes the `-wal` next to an empty database.
            guard let path, OutsideText.valid(path)?.isBelow(here.writable) == true else { return SQLITE_READONLY }
            return ConnectionVFS.delete(here.base, path, sync)
        }
        vfs.pointee.xFullPathname = { vfs, path, count, out in
            guard let here = SandboxVFS.of(vfs), let path else { return SQLITE_MISUSE }
            return here.resolve(path, count, out)
        }
        vfs.pointee.xCurrentTimeInt64 = { vfs, milliseconds in
            guard let here = SandboxVFS.of(vfs), let milliseconds else { return SQLITE_MISUSE }
            return here.time(milliseconds)
        }
    }

    private static func of(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> SandboxVFS? {
        guard let data = vfs?.pointee.pAppData else { return nil }
        return Unmanaged<SandboxVFS>.fromOpaque(data).takeUnretainedValue()
    }

    private func open(
        _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
        _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        var flags = flags
        // A file without a path is a temporary file that SQLite uses.
        if let path {
            guard let path = OutsideText.valid(path) else { return ConnectionVFS.refuse(file) }
            if !path.isBelow(writable) {
                let path = PinnedDirectory.named(path)
                guard mayRead(path) else {
                    refused = path
                    return ConnectionVFS.refuse(file)
                }
                if flags & SQLITE_OPEN_MAIN_DB != 0 { opened.insert(path) }
                flags &= ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_DELETEONCLOSE)
                flags |= SQLITE_OPEN_READONLY
            }
        }
        return ConnectionVFS.open(base, path, file, flags, outFlags)
    }

    private func resolve(_ path: UnsafePointer<CChar>, _ count: Int32, _ out: UnsafeMutablePointer<CChar>?) -> Int32 {
        let path = OutsideText.valid(path).map { $0.isAbsolutePath ? $0 : "\(directory)/\($0)" }
        return ConnectionVFS.resolve(path, count, out)
    }

    private func time(_ milliseconds: UnsafeMutablePointer<sqlite3_int64>) -> Int32 {
        clockReads += 1
        guard let clock else { return base.pointee.xCurrentTimeInt64(base, milliseconds) }
        // SQLite counts in Julian days; 1970 began at day 2440587.5.
        milliseconds.pointee = 210_866_760_000_000 + clock * 1000
        return SQLITE_OK
    }
}

extension Connection {
    /// Opens the file at the path with this VFS, which the connection keeps alive.
    package convenience init(path: String, access: Access, in vfs: SandboxVFS) throws {
        let uri = try access.uri(for: path, extra: "&vfs=\(vfs.name)")
        try self.init(uri: uri, path: path, file: OpenableFile(path, .immutable), busyTimeout: 0, limit: .infinity)
        self.vfs = vfs
    }
}
