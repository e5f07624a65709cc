internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Finds problems that will affect a store sooner or later, even if it works now. Changes nothing.
package struct StoreEnvironment {
    let store: StoreSnapshot
    let settings: Settings
    var layout: StoreLayout { store.layout }

    package init(_ store: StoreSnapshot) throws {
        self.store = store
        settings = try store.settings
    }

    /// Returns the faults for which root refuses to read this store; nil if it does not refuse.
    package static func custody(of layout: StoreLayout) throws -> [Finding]? {
        let custody = Custody(layout)
        do {
            try custody.check()
            try custody.check(cacheRoot: custody.cacheRoot)
        } catch let error as MoultError where error.code == .custody {
            var findings: [Finding] = []
            // A fault of a directory applies to all files in it.
            for fault in try custody.faults() where !findings.contains(where: { fault.path.isBelow($0.path ?? "") }) {
                findings.add(
                    .custody, path: fault.path, "it \(fault.why)",
                    why: "root does not use a store that other users can change", advice: custody.advice(fault))
            }
            return findings
        }
        return nil
    }

    package func examine() throws -> [Finding] {
        var findings: [Finding] = []
        for check in [
            { try Unfinished(in: layout).findings }, one(pointer), kinds, unreadable, links, settingsFile, one(product),
            secrets, one(history), one(holds), unknownFiles, unused, one(processes), fileSystems, one(version),
        ] { findings += try reportingDenial(check) }
        // `unreadable` reports the generations that are left out.
        for generation in try Generation.names(layout).compactMap({ try? store.generation($0) }) {
            findings += try reportingDenial { try databases(of: generation) }
        }
        if let current = try currentGeneration() { findings += try reportingDenial { try writable(current) } }
        var unique: [Finding] = []
        for finding in findings where !unique.contains(finding) { unique.append(finding) }
        return unique
    }

    private func one(_ check: @escaping () throws -> Finding?) -> () throws -> [Finding] {
        { try [check()].compactMap(\.self) }
    }

    /// Runs a check. If this user is not permitted to read a file, returns that as a finding, so that the other checks still
    /// run.
    func reportingDenial(_ check: () throws -> [Finding]) throws -> [Finding] {
        do { return try check() } catch let error as MoultError where Files.isDenied(error) {
            let finding = Finding(
                .denied, path: layout.root, error.what, why: error.why ?? "permission denied",
                advice: error.now ?? "\(run: ["ls", "-l", layout.root])")
            return [finding]
        }
    }

    /// Returns the current generation; nil if it cannot be read, which `unreadable` or `pointer` reports.
    func currentGeneration() throws -> Generation? {
        guard let name = try Files.target(ofLink: layout.current).map(Files.name(of:)) else { return nil }
        return try? store.generation(name)
    }

    /// Reports what is wrong with the databases of a generation. Of a kept one, only its read-only files are examined: they decide
    /// whether the store can roll back to it.
    func databases(of generation: Generation) throws -> [Finding] {
        let isCurrent = try Files.target(ofLink: layout.current) == StoreLayout.target(of: generation.name)
        let assessment = try Assessment(of: generation, in: store)
        var findings: [Finding] = []
        var isUnusable = false
        for database in generation.manifest.databases where isCurrent || database.kind.isSealed {
            let state = try assessment.state(of: database, .glance, reading: isCurrent)
            if isCurrent {
                findings += state.findings.filter { $0.kind != .locked }
            } else if let content = state.content, content.kind != .unverified, !isUnusable {
                isUnusable = true
                findings.add(
                    .generation, .note, path: content.path, content.what,
                    why: "the store cannot roll back to this generation",
                    advice: "To use this generation, install its release again: "
                        + "\(moult: "apply", "--allow-downgrade", "RELEASE")")
            }
            if let sidecar = state.sidecar, !isCurrent { findings.append(sidecar) }
            if database.kind.isSealed {
                // moult never writes to a read-only file, so its release must be installed again.
                let advice = Advice(moult: "apply", "RELEASE")
                findings += try [readOnlyWAL(database, generation.path(database.member), advice: advice)]
                    .compactMap(\.self)
            }
        }
        return findings
    }

    /// Reports a database in WAL mode whose sidecars readers cannot create: SQLite cannot open it, except with `immutable=1`.
    private func readOnlyWAL(_ database: Database, _ path: String, advice: Advice) throws -> Finding? {
        guard let facts = try Files.factsThroughLinks(path), facts.kind == .file,
            try !OpenFiles.isOpenHere(path), try DatabaseHeader.isWAL(unopened: path)
        else { return nil }
        let directory = Files.directory(of: try Files.target(ofLink: path) ?? path)
        // Checks the directory's mode, because root may write to every directory, but other readers may not.
        let isClosed = try Files.factsThroughLinks(directory).map { $0.mode & 0o222 == 0 } ?? false
        guard try isClosed || MountedFileSystem.of(path)?.isReadOnly == true else { return nil }
        return Finding(
            .walReadOnly, path: path, database: database.name,
            "\(database.name) is in WAL mode in a read-only directory",
            why: "SQLite cannot create its -wal and -shm there, so the database cannot be opened", advice: advice)
    }

    func writable(_ generation: Generation) throws -> [Finding] {
        let holders = try Holders(of: store).holders
        var findings: [Finding] = []
        for database in generation.manifest.databases where !database.kind.isSealed {
            let path = try store.place(of: database)
            guard let facts = try Files.factsThroughLinks(path), facts.kind == .file else { continue }
            for place in [path, Files.directory(of: path)] {
                guard let facts = try Files.factsThroughLinks(place), facts.mode & 0o222 == 0 else { continue }
                findings.add(
                    .readOnly, .warning, path: place, database: database.name, "no user has write permission for it",
                    why: "apps cannot write to \(database.name), and moult cannot update it",
                    advice: "\(run: ["chmod", "u+w", place])")
            }
            let sidecars = try Sidecars.of(path)
            let isWritten = holders.contains {
                $0.uses.contains { $0.what == .database && $0.name == database.name && $0.how == .writing }
            }
            if !isWritten, let journal = sidecars.journal, try sidecars.hasJournalHeader() {
                findings.add(
                    .hotJournal, .warning, path: journal.path, database: database.name,
                    "a program ended during a transaction",
                    why:
                        "the database is complete only after SQLite has rolled the journal back, so never delete the journal",
                    advice: "\(run: ["sqlite3", path, "SELECT count(*) FROM sqlite_schema"])")
            }
            let advice: Advice = "\(run: ["sqlite3", path, "PRAGMA journal_mode=DELETE"])"
            findings += try [readOnlyWAL(database, path, advice: advice)].compactMap(\.self)
            if try !OpenFiles.isOpenHere(path), try DatabaseHeader.isWAL(unopened: path),
                SQLiteVersion.linked.hasWALResetBug
            {
                findings.add(
                    .sqliteVersion, .note, path: path,
                    "it is in WAL mode, and SQLite \(SQLiteVersion.linked) has the WAL-reset bug",
                    why:
                        "in rare cases two processes that write and checkpoint at the same moment can corrupt the database",
                    advice: Self.upgrade)
            }
        }
        return findings
    }

    func version() throws -> Finding? {
        guard SQLiteVersion.linked.hasSavepointBug else { return nil }
        return Finding(
            .sqliteVersion, .note, path: layout.root,
            "SQLite \(SQLiteVersion.linked) has a bug in ROLLBACK TO with journals in memory",
            why: "a program that keeps its journals in memory may corrupt its database", advice: Self.upgrade)
    }

    private static let upgrade: Advice = "\(run: ["sudo", "apt-get", "install", "--only-upgrade", "libsqlite3-0"])"
}
