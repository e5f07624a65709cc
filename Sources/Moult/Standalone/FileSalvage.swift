internal import MoultBasics
internal import MoultFiles
package import MoultSQLite
internal import MoultSandbox

/// Salvages the rows of a damaged database that belongs to no store.
package enum FileSalvage {
    /// Writes the readable rows of a database into a new one, which exists afterwards only if rows were found. Changes neither the
    /// damaged file nor its sidecars.
    package static func run(_ file: String, to target: String, stop: () throws -> Void) throws -> Salvage.Report {
        guard let facts = try Files.factsThroughLinks(file), facts.kind == .file else {
            throw MoultError(
                .notThere, what: "cannot salvage \(file)",
                why: try Files.facts(file) == nil ? "no such file" : "it is not a regular file")
        }
        try requireUnused(target, .output)
        let output = try PinnedDirectory.output(Files.directory(of: target))
        defer { withExtendedLifetime(output) {} }
        // Beside the new file, because the copies are as large as the database.
        let scratch = Files.staged(target)
        try Files.removeTree(scratch)
        let result = Result { () throws -> Salvage.Report in
            try Files.makeDirectory(scratch, mode: 0o700)
            let found = "\(scratch)/found.db"
            let report = try Validator.available().salvage(
                file, name: Files.name(of: file), template: nil, to: found, scratch: scratch, stop: stop)
            if report.mayBeRepeated {
                throw MoultError(
                    .system, what: "cannot salvage \(file)", why: report.note,
                    now:
                        "Remove the cause, and run the command again. If the disk is full, choose another file system for "
                        + "the new file.")
            }
            if try Files.facts(found) != nil {
                // Users who could not read the database must not be able to read its rows.
                try Files.seal(found, mode: facts.mode & 0o666)
                guard try Files.renameIfFree(found, to: target) else { throw taken(target, .output) }
                try Files.syncDirectory(Files.directory(of: target))
            }
            return report
        }
        do { try Files.removeTree(scratch) } catch {
            _ = try result.get()
            throw error
        }
        return try result.get()
    }

    /// Throws if a file, or a sidecar of another database, is where a new database is to be written.
    static func requireUnused(_ file: String, _ code: MoultError.Code) throws {
        guard try Files.facts(file) == nil else { throw taken(file, code) }
        if let sidecar = try Sidecars.of(file).paths.first {
            throw MoultError(
                code, .refused, what: "\(sidecar) exists",
                why: "it belongs to another database, and SQLite would use it with \(file)",
                now: "Choose another file name. If that database no longer exists, move its file away: "
                    + "\(Files.commandToMoveAway(sidecar))")
        }
    }

    private static func taken(_ file: String, _ code: MoultError.Code) -> MoultError {
        MoultError(
            code, .refused, what: "\(file) exists", why: "the command never overwrites a file",
            now: "Choose another file name.")
    }
}
