internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

extension Doctor {
    func sealed(_ generation: Generation) throws -> [Finding] {
        let isCurrent = try Files.target(ofLink: layout.current) == StoreLayout.target(of: generation.name)
        var findings: [Finding] = []
        for database in generation.manifest.databases where database.kind.isSealed {
            let file = generation.path(database.member)
            let link = isCurrent ? layout.file(database.path) : nil
            for path in try Sidecars.besideReadOnly(file, link: link) {
                findings.append(
                    Finding(
                        kind: "sidecar", path: path, what: "it is next to the read-only database \(database.name)",
                        why: "SQLite would read it as part of the database, and return wrong data",
                        fix: try moveAway(path)))
            }
            findings += try readOnlyWAL(database.name, file).map { finding in
                var finding = finding
                // moult never writes to a read-only file, so the fix is to install the release again.
                finding.fix = command("moult", "apply", "--store", layout.root, "RELEASE")
                return finding
            }
        }
        return findings
    }

    /// Reports a database in WAL mode whose sidecars readers cannot create: SQLite cannot open it, except with `immutable=1`.
    private func readOnlyWAL(_ name: String, _ path: String) throws -> [Finding] {
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file,
            try !OpenFiles.isOpenHere(path), try DatabaseHeader.isWAL(unopened: path)
        else { return [] }
        let directory = Files.directory(of: try Files.target(ofLink: path) ?? path)
        // Checks the directory's mode, because root may write to every directory, but other readers may not.
        let isClosed = try Files.factsThroughLinks(directory).map { $0.mode & 0o222 == 0 } ?? false
        guard try isClosed || MountedFileSystem.of(path)?.isReadOnly == true else { return [] }
        return [
            Finding(
                kind: "walReadOnly", path: path, what: "\(name) is in WAL mode in a read-only directory",
                why: "SQLite cannot create its -wal and -shm there, so the database cannot be opened",
                fix: command("sqlite3", path, "PRAGMA journal_mode=DELETE"))
        ]
    }

    func writable(_ generation: Generation) throws -> [Finding] {
        let holders = try Holders(of: store).holders
        var findings: [Finding] = []
        for database in generation.manifest.databases where !database.kind.isSealed {
            let path = try store.place(of: database)
            guard let facts = try Files.factsThroughLinks(path), facts.kind == .file else { continue }
            for place in [path, Files.directory(of: path)] {
                guard let facts = try Files.factsThroughLinks(place), facts.mode & 0o222 == 0 else { continue }
                findings.append(
                    Finding(
                        kind: "readOnly", path: place, what: "no user has write permission for it",
                        why: "apps cannot write to \(database.name), and moult cannot update it",
                        fix: command("chmod", "u+w", place)))
            }
            if let refusal = try WritableFile.refusal(at: path) {
                findings.append(
                    Finding(
                        kind: "blocked", path: path, what: "updates are refused: \(refusal.what)",
                        why: refusal.why ?? "", fix: refusal.now?.description ?? ""))
            }
            let sidecars = try Sidecars.of(path)
            let isWritten = holders.contains {
                $0.uses.contains { $0.what == .database && $0.name == database.name && $0.how == .writing }
            }
            if !isWritten, let journal = sidecars.journal, try sidecars.hasJournalHeader() {
                findings.append(
                    Finding(
                        kind: "hotJournal", path: journal.path, what: "a program ended during a transaction",
                        why:
                            "the database is complete only after SQLite has rolled the journal back, so never delete the journal",
                        fix: command("sqlite3", path, "SELECT count(*) FROM sqlite_schema")))
            }
            findings += try readOnlyWAL(database.name, path)
            if try !OpenFiles.isOpenHere(path), try DatabaseHeader.isWAL(unopened: path),
                SQLiteVersion.linked.hasWALResetBug
            {
                findings.append(walReset(path))
            }
        }
        return findings
    }

    /// Reports problems of this command's SQLite that do not depend on the databases.
    func version() throws -> [Finding] {
        guard SQLiteVersion.linked.hasSavepointBug else { return [] }
        return [
            Finding(
                kind: "sqliteVersion", path: layout.root,
                what: "SQLite \(SQLiteVersion.linked) has a bug in ROLLBACK TO with journals in memory",
                why: "a program that keeps its journals in memory may corrupt its database",
                fix: "sudo apt-get install --only-upgrade libsqlite3-0", isAdvice: true)
        ]
    }

    private func walReset(_ path: String) -> Finding {
        Finding(
            kind: "sqliteVersion", path: path,
            what: "it is in WAL mode, and SQLite \(SQLiteVersion.linked) has the WAL-reset bug",
            why: "in rare cases two processes that write and checkpoint at the same moment can corrupt the database",
            fix: "sudo apt-get install --only-upgrade libsqlite3-0", isAdvice: true)
    }
}
