internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Computes the effect of a replacement on the rows of a shared database, as far as the existing file alone shows it: the rows
/// that are carried over and those that are not. Whether the rows fit is checked when the release is applied.
struct RowForecast {
    let database: Database
    let context: PlanContext
    /// Whether the content is from a release; otherwise the file is from before moult.
    let isOwn: Bool
    /// The digest in the file's release marker.
    let digest: String?

    /// A larger file is compared with the shipped content only when the release is applied, on a copy: in rollback mode, apps cannot
    /// commit while the file is read.
    private static let largest = PlanContext.largestCounted

    func rows(of live: Connection, _ place: String) throws -> [RowFate] {
        let origin = isOwn ? try origin() : nil
        let rules = rules(origin)
        try refuseForeignRejects(live)
        let pristine = try origin.flatMap(shippedContent)
        if let pristine { try refuseRenamed(rules, in: live, pristine) }
        var fates = RowFates()
        var selected: [SQLName: [String?]] = [:]
        let size = try Files.factsThroughLinks(place)?.size ?? 0
        for rule in rules {
            let conditions = try RowSelection(table: rule.table, conditions: rule.conditions)
                .conditions(adding: rule.olderConditions, in: live)
            let selection = RowSelection(table: rule.table, conditions: conditions)
            let count: Int
            switch try selection.reach(in: live, isChecked: isOwn || size > Self.largest) {
            case .absent: continue
            case .rows(let rows): count = rows
            case .unselectable(let rows, let cause):
                if !isOwn, rows > 0 {
                    if cause.code == .databaseCorrupt, !mayLeaveDamaged {
                        throw MoultError.unreadable(database, rule.table, cause)
                    }
                    fates.add(rule.table) { $0.kept += rows }
                }
                if mayLeave(rule) { continue }
                throw MoultError.unselectable(database, rule.table, cause)
            }
            selected[SQLName(rule.table)] = conditions
            if try rule.placement == nil || !targetHas(rule.table), count > 0 {
                try accept(rule, count)
                fates.add(rule.table) { $0.kept += count }
            } else if count > 0 {
                fates.add(rule.table) { $0.carried += count }
            }
        }
        if let pristine {
            if size <= Self.largest {
                for (table, rows) in try left(live, pristine, selected) { fates.add(table) { $0.kept += rows } }
            }
            try pristine.close()
        }
        return fates.all
    }

    private func refuseForeignRejects(_ live: Connection) throws {
        guard let column = try RejectTable(name: ReleaseMarker.rejects, label: "").missingColumn(in: live) else {
            return
        }
        throw MoultError.foreignRejects(live.path, lacking: column)
    }

    /// Opens the released file that the content comes from, if it is still there.
    private func shippedContent(of origin: ReleasedDatabase) throws -> Connection? {
        let shipped = context.store.path(ofMember: origin.database.member, in: origin.generation)
        return try Files.facts(shipped) == nil ? nil : Connection(path: shipped, access: .immutable)
    }

    private func refuseRenamed(_ rules: [Preservation.Rule], in live: Connection, _ pristine: Connection) throws {
        if mayLeaveDamaged { return }
        let tables = rules.filter { !$0.isForeign }.map(\.table)
        let found = try RowSelection.renamedTable(
            of: tables, in: live, shipped: pristine, ignoring: ReleaseMarker.tables)
        if let found { throw MoultError.renamed(database, live.path, found.old, to: found.new, found.rows) }
    }

    /// Throws if the release no longer preserves a table whose rows the installed release preserves.
    func refuseUnpreserved(_ live: Connection) throws {
        guard let before = try origin() else { return }
        for rule in rules(before) where rule.placement == nil {
            guard try RowSelection.hasTable(rule.table, in: live) else { continue }
            let count = try RowSelection(table: rule.table, conditions: rule.conditions).count(in: live)
            if count > 0 { try accept(rule, count) }
        }
    }

    /// Returns the installed release's database whose file is replaced. It is found by its path, because a release can give the
    /// file another name.
    private func installed() throws -> ReleasedDatabase? {
        guard let installed = context.installed, let generation = context.installedGeneration,
            let before = installed.databases.first(where: { $0.path == database.path && $0.kind.isReplaced })
        else { return nil }
        return ReleasedDatabase(before, generation: generation, version: installed.version)
    }

    /// Returns the released database that the content of the file comes from. A restored set, for example, may come from an
    /// earlier release.
    private func origin() throws -> ReleasedDatabase? {
        let before = try installed()
        guard let digest, digest != before?.database.sha256 else { return before }
        return try context.store.releasedDatabase(digest: digest) ?? before
    }

    private func rules(_ origin: ReleasedDatabase?) -> [Preservation.Rule] {
        Preservation(
            from: origin?.database, to: database,
            isBack: origin.map { context.release.version.precedes($0.version) } ?? (context.purpose == .rollback)
        ).rules
    }

    /// Returns whether the release has the table; true if that is unknown because the bundle is not unpacked yet.
    private func targetHas(_ table: String) throws -> Bool {
        let kept = context.store.path(ofMember: database.member, in: context.generation)
        guard try Files.facts(kept) != nil else { return true }
        let target = try Connection(path: kept, access: .immutable)
        let isThere = try RowSelection.hasTable(table, in: target)
        try target.close()
        return isThere
    }

    /// Returns whether rows that the rule does not carry over may stay behind in quarantine.
    private func mayLeave(_ rule: Preservation.Rule) -> Bool {
        !isOwn || rule.isForeign || context.purpose != .update || context.policy.acceptUnpreserved
    }

    private var mayLeaveDamaged: Bool {
        context.purpose != .update || context.policy.acceptUnpreserved || database.unpreserved == .keep
    }

    private func accept(_ rule: Preservation.Rule, _ count: Int) throws {
        guard !mayLeave(rule), database.unpreserved == .refuse else { return }
        throw MoultError.unpreserved(database, context.release.version, rule.table, count)
    }

    /// Returns the number of the app's rows that no rule selects, by table.
    private func left(
        _ live: Connection, _ pristine: Connection, _ selected: [SQLName: [String?]]
    ) throws -> [(String, Int)] {
        let content: AppContent
        do {
            content = try AppContent(of: live, against: pristine, selected: selected, ignoring: ReleaseMarker.tables)
        } catch let error as MoultError where error.code == .databaseCorrupt && mayLeaveDamaged {
            // The rows that can be read are counted when the release is applied, and the whole file is kept.
            return []
        }
        return content.rows.merging(content.tables, uniquingKeysWith: +).sorted { $0.key < $1.key }
            .filter { $0.value > 0 }.map { ($0.key.text, $0.value) }
    }
}

extension Database {
    /// Checks that the release's `preserve` matches its own schema: a misspelled name would leave the app's rows behind.
    func checkPreserve(in file: String, of release: Version) throws {
        guard kind.isReplaced, !preserve.isEmpty else { return }
        let connection = try Connection(path: file, access: .immutable)
        let check = SelectionCheck(connection)
        for (index, entry) in preserve.enumerated() {
            let rule = RowRule(table: entry.table, conditions: [entry.where], columns: entry.columns)
            guard let fault = try check.faults(in: rule).first else { continue }
            throw MoultError(
                .preserve, .refused,
                what: "databases.\(name).preserve[\(index)] does not match the schema of release \(release)",
                why: fault.subject == .condition ? "\"\(entry.where ?? "")\": \(fault.why)" : fault.why,
                now: "Nothing was changed. The publisher must correct the entry and publish a new release.")
        }
        try connection.close()
    }
}
