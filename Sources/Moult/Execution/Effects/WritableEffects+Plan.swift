internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

extension WritableEffects {
    /// Returns the effects in the order in which they are held: first those that only wait for other processes' transactions,
    /// and last those that take leases, because a lease can be held only briefly.
    func effects() throws -> [WritableEffect] {
        if let built { return built }
        var all: [WritableEffect] = try plan.effects.compactMap { try migration($0) }
        all += try plan.effects.compactMap { try rowRestore($0) }
        all += try plan.effects.compactMap { try rewrite($0) }
        all += try plan.effects.compactMap { try aside($0) }
        built = all
        return all
    }

    private func rewrite(_ effect: Effect) throws -> Rewrite? {
        guard case .replace(let new) = effect.change else { return nil }
        return Rewrite(
            effect, at: new.path, in: transaction, shippedFile: try template(new.member), try transfer(effect, new),
            try displacement(effect, place(new.path), rows: rows(effect, new.path)),
            recordsChanges: try ChangeRecord.isWanted(transaction.layout))
    }

    /// Returns the release's file of a database: staged, or in the generation that the update makes current.
    private func template(_ member: String) throws -> String {
        let staged = "\(transaction.generation)/\(member)"
        if try Files.facts(staged) != nil { return staged }
        return "\(transaction.layout.generation(plan.to.generation))/\(member)"
    }

    private func migration(_ effect: Effect) throws -> Migration? {
        guard case .migrate(let path, let members, _, _, _) = effect.change,
            let database = effect.database.flatMap(release.database)
        else { return nil }
        var migrations = Migrations(
            try database.migrations.filter { members.contains($0.member) }.map {
                try .init(name: $0.member, number: $0.number, file: "\(transaction.unpacked)/\($0.member)")
            })
        migrations.mayShrink = { [release] in release.mayShrink(database.name, table: $0, from: $1, to: $2) }
        let (file, new) = (place(path), try template(database.member))
        var templates = [new]
        // A file from before moult is compared with the new template.
        if let from = plan.from, let before = installed?.database(database.name) {
            templates.insert("\(transaction.layout.generation(from.generation))/\(before.member)", at: 0)
        }
        return Migration(
            effect, at: path, in: transaction, migrations, template: try templates.first { try Files.facts($0) != nil },
            misfit: { [release] in try release.schemaMisfit(of: database, template: new, $0, at: file) },
            try displacement(effect, file))
    }

    private func rowRestore(_ effect: Effect) throws -> RowRestore? {
        guard case .restoreRows(let path, let table, let set, _, let generations) = effect.change,
            let database = effect.database.flatMap(release.database)
        else { return nil }
        let record = try QuarantineRecord(in: "\(transaction.layout.quarantine(of: path))/\(set)")
        let origins = try generations.map { try shipped($0, database, record) }
        let source = zip(generations, origins).first { $0.0 != plan.to.generation }?.1
        return RowRestore(
            effect, at: path, in: transaction, table: table,
            rule: source.flatMap { rule(of: table, from: $0.database, $0.version, to: database) },
            shipped: zip(generations, origins).map { ($1.file, $0 == plan.to.generation) })
    }

    /// Returns the manifest entry and the file of a database in a generation. Each release can give the entry and the file
    /// other names, so the entry is first looked up by its path.
    private func shipped(
        _ generation: String, _ database: Database, _ record: QuarantineRecord?
    ) throws -> (database: Database?, file: String, version: Version) {
        var (entry, version) = (Optional(database), release.version)
        if generation != plan.to.generation {
            let manifest = try StoreSnapshot(transaction.layout).generation(generation).manifest
            let databases = manifest.databases
            version = manifest.version
            entry =
                databases.first { place($0.path) == record?.path } ?? databases.first { $0.name == record?.database }
        }
        let member = (entry ?? database).member
        return (entry, "\(transaction.layout.generation(generation))/\(member)", version)
    }

    /// Returns the rule with the renamed columns of a table in a set; nil if no column has been renamed. The set may come from an
    /// older or a newer release.
    private func rule(
        of table: String, from origin: Database?, _ version: Version, to database: Database
    ) -> Preservation.Rule? {
        let rules = Preservation(from: origin, to: database, isBack: release.version.precedes(version)).rules
        return rules.first { SQLName($0.table) == SQLName(table) }
    }

    private func aside(_ effect: Effect) throws -> Aside? {
        guard case .quarantine(let path, _, _) = effect.change else { return nil }
        return Aside(
            effect, at: path, in: transaction, newFile: plan.creates(path) ? transaction.waiting(path) : nil,
            set: try shelf(effect, path), try record(effect, place(path)))
    }

    private func displacement(_ effect: Effect, _ place: String, rows: String? = nil) throws -> Displacement {
        Displacement(place: place, directory: try shelf(effect, place), record: try record(effect, place), rows: rows)
    }

    /// Returns the path for rows that an update leaves behind; nil if the whole content must be kept, because an undo restores it.
    private func rows(_ effect: Effect, _ path: String) -> String? {
        let isUpdated = effect.database.flatMap(release.database)?.kind.isReplaced ?? false
        return isUpdated ? Staging.held("\(path).rows", in: transaction.directory) : nil
    }

    private func shelf(_ effect: Effect, _ path: String) throws -> String {
        let path = transaction.layout.name(of: path)
        return transaction.layout.quarantined(effect.database ?? Files.name(of: path), path: path, by: transaction.id)
    }

    private func database(of effect: Effect) throws -> Database {
        if let database = effect.database.flatMap(release.database) { return database }
        throw MoultError(.stuck, what: "the plan names a database that the release does not have", why: effect.text)
    }

    private func record(_ effect: Effect, _ held: String) throws -> QuarantineRecord {
        let database = try database(of: effect)
        let (why, reason): (String, KeptReason) =
            switch effect.change {
            case .quarantine(_, let why, let reason): (why, reason)
            case .replace(let new): (plan.whyDisplaced(new) ?? "release \(release.version) replaced it", new.reason)
            case .migrate(_, _, let from, let to, _): ("from user_version \(from) to \(to)", .migrated)
            default: (effect.text, .replaced)
            }
        // A release can move a name from one file to another, so the path determines which database the file was.
        let databases = installed?.databases ?? []
        let before = databases.first { place($0.path) == held } ?? databases.first { $0.name == database.name }
        var kind = before?.kind ?? database.kind
        // The content comes from a database of an earlier release, which the installed release does not list as one with app
        // data.
        if reason == .takenOver, before == nil || !kind.holdsAppData { kind = .user }
        if reason == .foreign { kind = .user }
        return QuarantineRecord(
            database: database.name, kind: kind, path: held, why: why, reason: reason,
            release: before == nil || reason == .foreign ? "" : plan.from?.version.description ?? "")
    }

    /// Returns the transfer of the old content that new content replaces.
    private func transfer(_ effect: Effect, _ new: Replacement) throws -> ContentTransfer {
        let database = try database(of: effect)
        // The path determines which installed database the old content belongs to, because a release can give the file another
        // name. A file from before moult belongs to none.
        let (held, reason) = (place(new.path), new.reason)
        let before =
            reason == .foreign ? nil : installed?.databases.first { $0.kind.isReplaced && place($0.path) == held }
        let origin = before.flatMap { before in
            plan.from.map {
                ReleasedDatabase(before, generation: $0.generation, version: installed?.version ?? release.version)
            }
        }
        let old: ContentTransfer.Old =
            switch reason {
            case .foreign: .foreign
            case .replaced, .rolledBack: origin.map { .shipped(file($0)) } ?? .takenOver
            default: .takenOver
            }
        let carriesNothing = new.carriesNothing(into: database)
        let mayLeave = plan.request.acceptUnpreserved || plan.purpose == .rollback || carriesNothing || isRecovery
        return ContentTransfer(
            database: database, release: release.version, old: old,
            rules: carriesNothing ? [] : rules(origin, database),
            acceptsUnpreserved: mayLeave || database.unpreserved == .keep, keepsUnselectableRows: mayLeave,
            carriesNothing: carriesNothing, decided: decidedMarker(new.path),
            contentOf: { [unowned self] digest in
                guard !carriesNothing, reason != .takenOver, digest != before?.sha256,
                    let origin = try StoreSnapshot(transaction.layout).releasedDatabase(digest: digest)
                else { return nil }
                return (file(origin), rules(origin, database))
            })
    }

    private func file(_ origin: ReleasedDatabase) -> String {
        "\(transaction.layout.generation(origin.generation))/\(origin.database.member)"
    }

    private func rules(_ origin: ReleasedDatabase?, _ database: Database) -> [Preservation.Rule] {
        Preservation(
            from: origin?.database, to: database,
            isBack: origin.map { release.version.precedes($0.version) } ?? (plan.purpose == .rollback)
        ).rules
    }
}

extension Replacement {
    /// Whether nothing of the old content is carried over, not even the records of rejected rows.
    fileprivate func carriesNothing(into database: Database) -> Bool {
        !database.kind.isReplaced || [.reset, .restored, .unfitCache].contains(reason)
    }
}

extension Plan {
    fileprivate func whyDisplaced(_ new: Replacement) -> String? {
        if new.reason == .rolledBack { return "rolled back to \(to.version)" }
        for case .displace(new.path, let why, _) in effects.map(\.change) { return why }
        return nil
    }

    fileprivate func creates(_ path: String) -> Bool {
        effects.contains { if case .create(path, _) = $0.change { true } else { false } }
    }
}
