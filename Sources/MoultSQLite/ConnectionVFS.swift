import CLinux
import CSQLite
import MoultBasics
import MoultFiles
import MoultLibc
import Synchronization

/// SQLite's access to files on every connection: the system's own VFS, without the ways in which another user who can put files
/// next to a database could reach other files.
///
/// - A hot journal may name a super-journal, which SQLite opens and then deletes after it has rolled the journal back. Only files
///   that have the name of a super-journal are deleted as one. A journal that names another file is rolled back like one without
///   a super-journal; if it names a sidecar of another database, SQLite reports once that it cannot delete the file.
/// - A sidecar of another user is not opened (`Sidecars.isForeign`).
/// - A symlink of another user is not followed (`Files.resolvedForOpening`).
/// - A file in a pinned directory is opened through the open directory.
enum ConnectionVFS {
    // Set once, and never changed or freed.
    nonisolated(unsafe) private static let name = strdup("moult")
    nonisolated(unsafe) private static let base = sqlite3_vfs_find(nil)

    private static let registered: Int32 = {
        guard let base, let name else { return SQLITE_NOMEM }
        let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        vfs.initialize(to: base.pointee)
        vfs.pointee.pNext = nil
        vfs.pointee.zName = UnsafePointer(name)
        vfs.pointee.xOpen = { _, path, file, flags, outFlags in
            guard let base = ConnectionVFS.base else { return SQLITE_MISUSE }
            return ConnectionVFS.open(base, path, file, flags, outFlags)
        }
        vfs.pointee.xDelete = { _, path, sync in
            guard let base = ConnectionVFS.base else { return SQLITE_MISUSE }
            return ConnectionVFS.delete(base, path, sync)
        }
        vfs.pointee.xFullPathname = { _, path, count, out in
            guard let path else { return SQLITE_MISUSE }
            return ConnectionVFS.resolve(OutsideText.valid(path), count, out)
        }
        let code = moult_sqlite_replace_open(moult_database_open, moult_database_close)
        return code == SQLITE_OK ? sqlite3_vfs_register(vfs, 0) : code
    }()

    /// Returns the name of the VFS, which stays registered as long as the process runs.
    static func registeredName() throws -> UnsafePointer<CChar> {
        guard registered == SQLITE_OK, let name else {
            throw MoultError(.sqlite, what: "cannot set up file access for SQLite", why: "\(ResultCode(registered))")
        }
        return UnsafePointer(name)
    }

    // MARK: the rules

    static func open(
        _ base: UnsafeMutablePointer<sqlite3_vfs>, _ path: UnsafePointer<CChar>?,
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        if let path, flags & (SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0 {
            guard let name = OutsideText.valid(path) else { return refuse(file) }
            let isSidecar = flags & SQLITE_OPEN_SUPER_JOURNAL == 0
            openedAsSuperJournals.withLock { if isSidecar { $0.remove(name) } else { $0.insert(name) } }
            if !mayOpen(name, isSidecar: isSidecar) { return refuse(file) }
        }
        return base.pointee.xOpen(base, path, file, flags, outFlags)
    }

    /// Returns the code of an open that was refused. After a failed open, SQLite still calls `xClose` if `pMethods` is set, but no
    /// file was opened.
    static func refuse(_ file: UnsafeMutablePointer<sqlite3_file>?) -> Int32 {
        file?.pointee.pMethods = nil
        return SQLITE_CANTOPEN
    }

    /// The paths that SQLite has opened as a super-journal, and not as a sidecar since. SQLite opens journals in this way as well,
    /// to check whether they name the same super-journal.
    private static let openedAsSuperJournals = Mutex<Set<String>>([])

    /// Returns whether SQLite may open or create a journal or WAL. It may not if the file belongs to a user who may not write to
    /// the database, or if it is a pipe, on which SQLite would block forever.
    private static func mayOpen(_ path: String, isSidecar: Bool) -> Bool {
        do {
            guard let facts = try Files.facts(path) else { return true }
            guard facts.kind == .file else { return false }
            guard isSidecar, let dash = path.utf8.lastIndex(of: UInt8(ascii: "-")),
                let database = try Files.facts(String(path[..<dash]))
            else { return true }
            return try !Sidecars.isForeign(.init(path: path, facts: facts), to: database)
        } catch { return false }
    }

    static func delete(_ base: UnsafeMutablePointer<sqlite3_vfs>, _ path: UnsafePointer<CChar>?, _ sync: Int32) -> Int32
    {
        guard let path else { return SQLITE_MISUSE }
        guard let name = OutsideText.valid(path) else { return SQLITE_CANTOPEN }
        let wasSuperJournal = openedAsSuperJournals.withLock { $0.remove(name) != nil }
        if !isSuperJournal(name) {
            guard SidecarSuffixes.all.contains(where: { name.hasByteSuffix($0) }) else { return SQLITE_OK }
            // A transaction is committed by deleting its journal, so this must not look as if it had been done.
            if wasSuperJournal { return SQLITE_IOERR | 10 << 8 }
        }
        return base.pointee.xDelete(base, path, sync)
    }

    /// SQLite names a super-journal `DATABASE-mjXXXXXX9XX`, with hexadecimal digits.
    private static func isSuperJournal(_ path: String) -> Bool {
        let end = Array(path.utf8.suffix(12))
        guard end.count == 12, end.starts(with: "-mj".utf8), end[9] == UInt8(ascii: "9") else { return false }
        return end[3...].allSatisfy { (0x30...0x39).contains($0) || (0x41...0x46).contains($0) }
    }

    /// Writes the path without symlinks. SQLite's own function would resolve it again, and the link of a pinned directory with it.
    static func resolve(_ path: String?, _ count: Int32, _ out: UnsafeMutablePointer<CChar>?) -> Int32 {
        // SQL can name a file with any bytes.
        guard let path, let out, let file = try? Files.resolvedForOpening(path), file.utf8.count < Int(count) else {
            return SQLITE_CANTOPEN
        }
        _ = strcpy(out, file)
        return SQLITE_OK
    }
}
