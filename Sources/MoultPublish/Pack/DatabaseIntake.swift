internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// How a database file became part of a release.
package struct TakenFile: Sendable {
    /// Why SQLite has copied its content; nil if the release has the bytes of the file.
    package let reason: String?
    package let freeBytes: Int
}

/// Copies a database of a draft to the staging directory as a single file in rollback mode; its source is never
/// changed.
struct DatabaseIntake {
    let options: PackOptions
    let directory: String

    /// Returns how a file was copied; nil for a database that a script builds.
    func take(_ database: Database, to file: String) throws -> TakenFile? {
        switch database.source ?? .file(database.member) {
        case .file(let name):
            let source = name.isAbsolutePath ? name : "\(directory)/\(name)"
            let reason = try take(source, to: file) { done, total in
                try options.progress(PackProgress(what: "copy \(database.name)", done: done, total: total))
            }
            try requireNoRejects(database.name, file, source: source)
            let taken = TakenFile(reason: reason, freeBytes: try FreePages.bytesWithContent(in: file))
            if taken.freeBytes > 0 {
                options.warn(
                    "\(source) has \(ByteCount(taken.freeBytes)) of free pages with old content, such as deleted rows, "
                        + "and every store gets them. To remove them: \(shellLine(["sqlite3", source, "VACUUM"]))")
            }
            return taken
        case .script(let script, let define, let analyze, let from):
            var build = BuildOptions()
            build.defines = options.defines.merging(define) { $1 }
            build.environment = options.environment
            build.analyze = analyze
            build.applicationID = database.identity.applicationID.flatMap { Int32(exactly: $0) }
            build.userVersion = database.identity.userVersion.flatMap { Int32(exactly: $0) }
            build.from = from.map { "\(directory)/\($0)" }
            build.warn = { options.warn($0.description) }
            build.shouldStop = options.shouldStop
            build.progress = {
                var progress = $0
                progress.what = "build \(database.name): \(progress.what)"
                try options.progress(progress)
            }
            let report = try DatabaseBuilder(build).build(script: "\(directory)/\(script)", output: file)
            if let revision = report.revision, revision.isDirty, !options.allowDirty {
                throw MoultError(
                    .packing, .refused, what: "the repository has uncommitted changes (\(revision.describe))",
                    why: "the script \(script) uses the version of the repository",
                    now: "Commit or stash them, or use --allow-dirty.")
            }
            return nil
        }
    }

    /// Throws if a database has rows that an update rejected, or the marker of an update: every store would get them. `source` is the
    /// file that the publisher can change.
    private func requireNoRejects(_ name: String, _ file: String, source: String) throws {
        let connection = try Connection.openGuarded(path: file, access: .readOnly, deadline: 3600)
        let count = try RejectTable(label: "").count(in: connection)
        let isMarked = try connection.int("SELECT count(*) FROM sqlite_schema WHERE name = '\(transactionTable)'") > 0
        try connection.close()
        if isMarked {
            throw MoultError(
                .packing, .refused, what: "the database \(name) is from a store in which an update had not ended",
                why: "\(source) has the table \(transactionTable), and every store would get it",
                now: "Nothing was written. Remove it with: "
                    + "\(run: ["sqlite3", source, "DROP TABLE \(transactionTable)"])")
        }
        guard count > 0 else { return }
        throw MoultError(
            .packing, .refused, what: "the database \(name) has rows of a user",
            why:
                "\(source) has \(counted(count, "row")) in the table \(ReleaseMarker.rejects), and every store would get them",
            now: "Nothing was written. Remove them with: \(RejectTable.removal(from: source))")
    }

    /// Returns why the copy has other bytes than the source; nil if it has the same.
    private func take(_ source: String, to file: String, copied: (Int, Int) throws -> Void) throws -> String? {
        guard try Files.factsThroughLinks(source) != nil else {
            throw MoultError(
                .packing, what: "no database at \(source)", why: "the draft refers to this file",
                now: "Build it first, or add its script to the draft: \"build\": { \"script\": \"make.sql\" }.")
        }
        let reason = try LockFreeReader.into(source) { connection, way in
            let (header, size) = try (connection.header(), connection.fileSize())
            guard size % Int64(header.pageSize) == 0 else {
                throw MoultError(
                    .packing, .refused, what: "the database \(source) is truncated",
                    why: "its \(size) bytes are not a multiple of the page size \(header.pageSize)",
                    now: "Create it again, or use a complete copy.")
            }
            if way == .locks, try connection.copyLockedFile(to: file, copied: copied) { return String?.none }
            // Copied page by page, so that the layout stays the same and patches between releases stay small. The copy includes
            // the content of a WAL.
            let copy = try Connection(path: file, access: .readWriteCreate)
            // Published files are synced later, and the copy is not used after a crash.
            try copy.execute("PRAGMA synchronous = OFF")
            try connection.backup(to: copy, copied: copied)
            try copy.close()
            return way == .locks ? "its size does not match its header" : "it is in WAL mode"
        }
        if reason != nil { try WALCheckpoint.checkpointAndSeal(file) }
        return reason
    }
}
