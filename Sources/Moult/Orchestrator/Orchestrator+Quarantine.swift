internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import MoultSandbox
package import StepKit

extension Orchestrator {
    package func quarantine() throws -> [QuarantineShelf.Set] { try shelf().sets() }

    /// Returns the set with this identifier, or, given the name of a database, the newest set of that database that has content. A
    /// cache does not count if the installed release has data of the app or of users there.
    package func quarantined(_ name: String) throws -> QuarantineShelf.Set {
        let sets = try quarantine()
        let own = sets.filter { $0.record?.database == name }
        let holdsData = try snapshot().installed?.manifest.databases.first { $0.name == name }?.holdsAppData ?? false
        let fitting = own.filter { !holdsData || $0.record?.kind.holdsAppData == true }
        if let set = sets.first(where: { $0.id == name }) ?? fitting.last(where: \.hasContent)
            ?? own.last(where: \.hasContent) ?? own.last
        {
            return set
        }
        let names = sets.compactMap { $0.record?.database } + sets.map(\.id)
        throw MoultError(
            .quarantine, .refused, what: "quarantine has no set or database named \"\(name)\"",
            why: "the quarantine of \(layout.root) "
                + (sets.isEmpty ? "is empty" : "has \(counted(sets.count, "set"))"),
            now: didYouMean(name, among: names) ?? "To list the sets: \(moult: "quarantine")")
    }

    /// Copies the database of a set, including the content of its sidecars, into a new file.
    package func export(_ set: QuarantineShelf.Set, to file: String) throws {
        try FileSalvage.requireUnused(file, .quarantine)
        try Files.withScratchDirectory { scratch in
            let copy = try checkedCopy(set, in: scratch, usingReadableRows: tellDamage)
            // Users who could not read the database must not be able to read its copy.
            let output = try PinnedDirectory.output(Files.directory(of: file))
            defer { withExtendedLifetime(output) {} }
            let mode =
                try set.record?.owner.map { UInt32($0.mode) } ?? set.file.flatMap { try Files.facts($0) }?.mode ?? 0o600
            do {
                try Files.copy(copy, to: file, mode: mode & 0o777)
                try Files.syncFile(file)
            } catch {
                // If the file exists now, another program has created it in the meantime, and it stays. The error of the copy
                // is the one to report.
                if (error as? MoultError)?.cause as? Errno != .exists { try? Files.remove(file) }
                throw error
            }
        }
    }

    private func export(_ set: QuarantineShelf.Set) -> Advice.Command {
        Advice.Command(["moult", "quarantine", "--export", "FILE", set.id])
    }

    /// Restores the database of a set to its path in the store. The present database goes to quarantine.
    package func restore(
        _ set: QuarantineShelf.Set, wait: Int = 0, announce: (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        if let record = set.record, record.isRows {
            let tables = (record.rows ?? [:]).keys.sorted().map(\.text)
            let command = ["moult", "quarantine", "--restore", set.id, "--table"] + tables.prefix(1)
            throw MoultError(
                .quarantine, .refused, what: "\(set.id) is not a whole database",
                why: "nothing but rows differed from the release, so only the rows were kept",
                now: "Restore the rows of each table (\(tables.joined(separator: ", "))): \(run: command)")
        }
        let database = try writable(set)
        return try locked(wait) { store, recovered in
            try inScratch { scratch in
                let copy = try checkedCopy(set, in: scratch)
                return try execute(in: store, recovered: recovered, announce) {
                    try planner($0).restore(database.name, from: copy, why: "\(set.id) was restored")
                }
            }
        }
    }

    /// Restores into one table the rows of a set that the table no longer has, except rows shipped by a release. If another row
    /// now uses the key of a restored row, the restored row goes to `moult_rejected`, unless an earlier restore has already put
    /// it there.
    package func restore(_ set: QuarantineShelf.Set, table: String, wait: Int = 0) throws -> RowFate {
        try restore(set, table: table, wait: wait, usingReadableRows: tellDamage)
    }

    private func restore(
        _ set: QuarantineShelf.Set, table: String, wait: Int, usingReadableRows tell: @escaping (String) -> Void
    ) throws -> RowFate {
        let database = try writable(set)
        let result = try locked(wait) { store, recovered in
            try inScratch { scratch in
                let copy = try checkedCopy(set, in: scratch, usingReadableRows: tell)
                let name = try existingTable(table, in: copy, set)
                try requireTable(name, at: layout.file(database.path), set)
                if set.record?.isRows == true { try addShippedRows(of: name, set, to: copy) }
                let restored = RestoredTable(table: name, set: set.id, generations: try shipping(set))
                let generated = try columnsGeneratedNow(name, layout.file(database.path), in: copy)
                let result = try execute(in: store, recovered: recovered, { _ in }) {
                    try planner($0).restore(database.name, from: copy, why: "", table: restored)
                }
                if !generated.isEmpty {
                    let columns = generated.joined(separator: ", ")
                    let release = try store.installedVersion.map { " in release \($0)" } ?? ""
                    watcher.tell(
                        .warning(
                            "\(name) has generated columns\(release): \(columns). "
                                + "The restored rows have computed values there, and the old values are only in \(set.id)"
                        ))
                }
                return result
            }
        }
        var fate = result.rows.first ?? RowFate(table: table)
        fate.database = nil
        return fate
    }

    /// Returns the generations whose rows do not belong to the app: the installed one, and those of the release that the set
    /// comes from.
    private func shipping(_ set: QuarantineShelf.Set) throws -> [String] {
        let (current, release) = (try Generation.currentName(layout), set.record?.release)
        return try Files.list(layout.generations).sorted().filter {
            $0 == current || Generation.version(of: $0) == release
        }
    }

    /// Adds the shipped rows to the copy of a set that has only rows of the app. A restore leaves the shipped rows out, and so
    /// distinguishes them from equal rows of the app.
    private func addShippedRows(of table: String, _ set: QuarantineShelf.Set, to copy: String) throws {
        let store = snapshot()
        for name in try shipping(set) where Generation.version(of: name) == set.record?.release {
            let databases = try store.generation(name).manifest.databases
            let database =
                try databases.first { try store.place(of: $0) == set.record?.path }
                ?? databases.first { $0.name == set.record?.database }
            guard let database else { continue }
            return try KeptRows.add(table, shippedIn: "\(layout.generation(name))/\(database.member)", to: copy)
        }
    }

    /// Returns the table's name as spelled in the set; throws if the set has no such table.
    private func existingTable(_ table: String, in copy: String, _ set: QuarantineShelf.Set) throws -> String {
        let names = try tables(inCopy: copy, set)
        let old = try Connection(path: copy, access: .readWrite)
        let isThere = try RowSelection.hasTable(table, in: old) && !isOwn(table, set)
        let isVirtual =
            try old.int(
                "SELECT count(*) FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%' AND name = ?1 COLLATE NOCASE",
                [.text(table)]) > 0
        try old.close()
        if isVirtual {
            throw MoultError(
                .quarantine, .refused, what: "the rows of \(table) cannot be restored alone",
                why: "\(table) is a virtual table",
                now: "Restore the whole database: \(moult: "quarantine", "--restore", set.id). "
                    + "Or export it: \(export(set))")
        }
        if isThere { return names.first { SQLName($0) == SQLName(table) } ?? table }
        throw MoultError(
            .quarantine, .refused, what: "\(set.id) has no table \"\(table)\"",
            why: names.isEmpty ? "its database has no tables" : "its tables are \(names.joined(separator: ", "))",
            now: didYouMean(table, among: names))
    }

    private func tables(inCopy copy: String, _ set: QuarantineShelf.Set) throws -> [String] {
        let connection = try Connection(path: copy, access: .readWrite)
        let names = try connection.rowCounts().keys.sorted().map(\.text).filter { !isOwn($0, set) }
        try connection.close()
        return names
    }

    /// Returns the tables in an order in which rows find the rows to which their foreign keys refer.
    private func parentsFirst(_ tables: [String], inCopy copy: String) throws -> [String] {
        let connection = try Connection(path: copy, access: .readWrite)
        var waiting: [(table: String, parents: Set<SQLName>)] = []
        for table in tables {
            let parents = try connection.query("SELECT \"table\" FROM pragma_foreign_key_list(?1)", [.text(table)])
                .compactMap { if case .text(let name) = $0[0] { SQLName(name) } else { nil } }
            waiting.append((table, Set(parents).subtracting([SQLName(table)])))
        }
        try connection.close()
        var sorted: [String] = []
        while !waiting.isEmpty {
            let left = Set(waiting.map { SQLName($0.table) })
            // Tables may refer to each other in a circle.
            let next = waiting.firstIndex { $0.parents.isDisjoint(with: left) } ?? 0
            sorted.append(waiting.remove(at: next).table)
        }
        return sorted
    }

    private func isOwn(_ table: String, _ set: QuarantineShelf.Set) -> Bool {
        ReleaseMarker.isOwn(table) || set.record?.isRows == true && SQLName(table) == SQLName(KeptRows.origins)
    }

    /// Throws if the store's database has no table for the rows.
    private func requireTable(_ table: String, at place: String, _ set: QuarantineShelf.Set) throws {
        guard try Files.factsThroughLinks(place) != nil,
            try !NonInvasiveReader.into(place, { try RowSelection.hasTable(table, in: $0) })
        else { return }
        throw MoultError(
            .quarantine, .refused, what: "the rows of \(table) cannot be restored alone",
            why: "\(place) has no table of this name",
            now: "Export the old database, and copy the rows with an app: \(export(set))")
    }

    /// Returns the columns that are stored in a set's table but generated in the store's database.
    private func columnsGeneratedNow(_ table: String, _ place: String, in copy: String) throws -> [String] {
        func columns(_ connection: Connection, _ hidden: String) throws -> [SQLName] {
            let sql = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden \(hidden) ORDER BY cid"
            return try connection.query(sql, [.text(table)]).compactMap {
                if case .text(let name) = $0[0] { SQLName(name) } else { nil }
            }
        }
        let old = try Connection(path: copy, access: .readWrite)
        let stored = Set(try columns(old, "= 0"))
        try old.close()
        guard try Files.factsThroughLinks(place) != nil else { return [] }
        return try NonInvasiveReader.into(place) { try columns($0, "> 1") }.filter(stored.contains).map(\.text)
    }

    /// Removes the sets that are at least so many days old, of one database or of all; those with user data only with
    /// `includingUserData`.
    package func removeQuarantined(
        _ name: String?, olderThan days: Int, includingUserData: Bool, wait: Int
    ) throws -> QuarantineShelf.Report {
        if let name { _ = try quarantined(name) }
        return try locked(wait) { store, recovered in
            let shelf = QuarantineShelf(layout: layout, settings: try store.settings)
            let report = try shelf.clean(olderThan: days, of: name, includingUserData: includingUserData, dry: false)
            return Result(recovered: recovered, quarantine: report)
        }.quarantine
    }

    package func remove(_ sets: [QuarantineShelf.Set], wait: Int = 0) throws {
        _ = try locked(wait) { _, recovered in
            for set in sets { try Removable(set, isNamed: true)?.removeSet() }
            return Result(recovered: recovered)
        }
    }

    /// Runs the body with a scratch directory. A failure to remove the directory does not change the result.
    private func inScratch<R>(_ body: (String) throws -> R) throws -> R {
        var result: R?
        do { try Files.withScratchDirectory { result = try body($0) } } catch {
            guard result != nil else { throw error }
            watcher.tell(.warning("\(error)"))
        }
        guard let result else { throw MoultError(.quarantine, what: "nothing was restored") }
        return result
    }

    private func shelf() throws -> QuarantineShelf {
        QuarantineShelf(layout: layout, settings: try snapshot().settings)
    }

    /// Returns the database of the installed release that a set belongs to: the one with the recorded name, or if no database
    /// has this name, the one at the recorded path. The path to write to comes from the manifest, never from the record.
    /// Throws if these are two databases, because a release may have given the name to another file, or moved the file.
    private func writable(_ set: QuarantineShelf.Set) throws -> Database {
        guard let installed = try snapshot().installed?.manifest else {
            throw MoultError(
                .quarantine, .refused, what: "\(set.id) cannot be restored", why: "no release is installed",
                now: "Install a release first, or export the data: \(export(set))")
        }
        func refusal(_ why: String) -> MoultError {
            MoultError(
                .quarantine, .refused, what: "\(set.id) cannot be restored", why: why,
                now: "Export the data instead: \(export(set))")
        }
        let store = snapshot()
        let named = set.record.flatMap { installed.database($0.database) }
        let placed = try installed.databases.first { try store.place(of: $0) == set.record?.path }
        guard let database = named ?? placed, !database.kind.isSealed else {
            throw refusal("release \(installed.version) has no writable database for it")
        }
        if let named, let placed, named.name != placed.name, !placed.kind.isSealed {
            throw refusal(
                "in release \(installed.version), \(named.name) is at \(named.path), and \(placed.path) belongs to "
                    + "\(placed.name)")
        }
        if database.kind.isDisposable, set.record?.kind.isDisposable == false {
            throw refusal(
                "in release \(installed.version), \(database.name) is a cache, which moult replaces without keeping its rows"
            )
        }
        return database
    }

    private func tellDamage(_ what: String) {
        watcher.tell(.warning("\(what); the rows that could be read from it are used"))
    }

    /// Returns a copy of a set's database that SQLite can open, or, if the database is damaged, of the one with its readable rows,
    /// after telling `usingReadableRows`; throws if that is nil. Any process may have changed files in quarantine, so the copy is
    /// checked like an untrusted database.
    private func checkedCopy(
        _ set: QuarantineShelf.Set, in scratch: String, usingReadableRows tell: ((String) -> Void)? = nil
    ) throws -> String {
        guard let file = set.file, try Files.facts(file)?.kind == .file else {
            throw MoultError(
                .quarantine, .refused, what: "\(set.id) has no database file",
                why: set.file.map { "\($0) is missing" } ?? "the record of the set cannot be read",
                now: "The files are in \(set.directory).")
        }
        let (copy, damage) = try copied(file, to: "\(scratch)/set.db")
        guard let damage else { return copy }
        guard let tell, let readable = try readableRows(of: set) else { throw damaged(set, file, damage) }
        let (rows, fault) = try copied(readable, to: "\(scratch)/rows.db")
        if let fault { throw damaged(set, readable, fault) }
        tell("\(file) is damaged: \(damage)")
        return rows
    }

    private func copied(_ file: String, to copy: String) throws -> (copy: String, damage: String?) {
        let whole = "\(copy).whole"
        try NonInvasiveReader.copySet(file, to: copy)
        do { try NonInvasiveReader.copy(copy, to: whole) } catch let error as MoultError
            where error.code == .databaseCorrupt
        { return (whole, error.why ?? error.what) }
        try DatabaseHeader.setRollbackMode(ofCopy: whole)
        let validation = Validation(
            name: Files.name(of: file), path: whole, depth: .quick,
            processor: CheckTime().seconds(for: try Files.facts(whole)?.size ?? 0))
        let report = try Validator.available().examine([validation], scratch: "\(copy).exam").first
        if let failure = report?.failure { throw failure }
        return (whole, report?.findings?.first)
    }

    private func damaged(_ set: QuarantineShelf.Set, _ file: String, _ why: String) -> MoultError {
        MoultError(
            .quarantine, .refused, what: "\(file) is damaged", why: why,
            now: restoringRows(set) ?? salvaging(set) ?? "The damaged file stays in quarantine.")
    }

    /// Returns the advice to salvage the rows of a set. That works only with the newest set of a database that is not a cache.
    private func salvaging(_ set: QuarantineShelf.Set) -> Advice? {
        // The error that is reported matters more than a quarantine that cannot be listed.
        guard let name = set.record?.database, let newest = try? newestSet(of: name), newest.id == set.id else {
            return nil
        }
        return "Salvage the readable rows: \(moult: "reset", name, "--salvage-again")"
    }

    /// Returns the advice for a set of which the readable rows were already salvaged.
    private func restoringRows(_ set: QuarantineShelf.Set) -> Advice? {
        // The error that is reported matters more than a file that cannot be examined.
        guard let report = try? Orchestrator.salvageReport(in: set.directory),
            let table = report.tables.first(where: { $0.rows > 0 && !isOwn($0.name, set) })
        else { return nil }
        return
            "Restore its readable rows, table by table: \(moult: "quarantine", "--restore", set.id, "--table", table.name)"
    }

    /// Returns the database with the rows that were salvaged from the database of a set, or nil.
    private func readableRows(of set: QuarantineShelf.Set) throws -> String? {
        let file = "\(set.directory)/\(QuarantineRecord.salvaged)"
        return try Files.facts(file)?.kind == .file ? file : nil
    }

    /// Restores all rows of a set, table by table, by the rules for rows that an update carries over. A table that cannot be
    /// restored does not prevent the others.
    func restoreTables(of id: String, wait: Int) throws -> (rows: [RowFate], failures: [MoultError]) {
        let set = try quarantined(id)
        // An app fills its cache again.
        if set.isCache { return ([], []) }
        let names = try inScratch { scratch -> [String] in
            let copy = try checkedCopy(set, in: scratch, usingReadableRows: { _ in })
            return try parentsFirst(tables(inCopy: copy, set), inCopy: copy)
        }
        var (rows, failures): ([RowFate], [MoultError]) = ([], [])
        for table in names {
            do {
                rows.append(try restore(set, table: table, wait: wait, usingReadableRows: { _ in }))
            } catch let error as MoultError where error.code != .interrupted { failures.append(error) }
        }
        return (rows, failures)
    }
}
