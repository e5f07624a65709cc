internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Handles the old content of a database during an update: rows are carried over, and if any content is neither shipped nor
/// carried over, `Displacement` keeps the whole file in quarantine.
struct ContentTransfer {
    /// The origin of the replaced content.
    enum Old {
        /// A database that was created from the release's file at this path.
        case shipped(String)
        /// A file that moult did not create: its whole content is kept.
        case foreign
        /// A file of another database, or one that is reset: its whole content is kept.
        case takenOver
    }

    let database: Database
    let release: Version
    var old: Old
    var rules: [Preservation.Rule]
    let acceptsUnpreserved: Bool
    /// Whether rows stay behind in quarantine if the installed release's conditions cannot select them.
    let keepsUnselectableRows: Bool
    /// Whether nothing is carried over, not even the records of rejected rows.
    let carriesNothing: Bool
    /// The marker of the old content at the decision, when an update is recovered: then nothing is refused any more.
    let decided: WritableEffect.OldMarker?
    /// Returns the shipped file and the rules for content whose digest is not that of the installed release; nil if no kept
    /// release has that digest, or if the whole content is kept. A set restored from quarantine, for example, may have the content of an earlier release.
    let contentOf: (_ digest: String) throws -> (file: String, rules: [Preservation.Rule])?

    /// Whether the file existed before moult.
    var isForeign: Bool { if case .foreign = old { true } else { false } }
    /// Whether the update is refused if no row can be carried over, because the operator has not accepted that.
    var mustCarry: Bool { !rules.isEmpty && !acceptsUnpreserved }

    /// The result of a transfer, from which `update` continues.
    struct Carried {
        fileprivate let content: ContentTransfer
        fileprivate let rules: [Preservation.Rule]
        fileprivate let transfer: RowTransfer?
        fileprivate let outcomes: [TableOutcome]
        /// Whether nothing but selected rows differed from the shipped content.
        fileprivate let isAccounted: Bool
    }

    /// Carries the rows over. The caller has begun a transaction in the new database; the old database is not changed. The result is
    /// nil if the difference cannot be carried over later.
    @discardableResult
    func run(from live: Connection, to new: Connection, _ displacement: Displacement?) throws -> Carried? {
        var transfer = self
        if !isForeign, try live.int(ReleaseMarker.isThere) == 1,
            case .text(let digest)? = try live.scalar(ReleaseMarker.digest), let content = try contentOf(digest)
        {
            (transfer.old, transfer.rules) = (.shipped(content.file), content.rules)
        }
        if let decided, !carriesNothing, try TransactionMarker.read(live) != decided.transaction {
            transfer.old = .foreign
            displacement?.keepAsForeign()
        }
        return try transfer.carry(from: live, to: new, displacement)
    }

    /// Carries over what apps have changed since the rows were carried over from a copy, and proves the old content again. The
    /// caller has begun a transaction in the new database, and rolls it back if the result is nil; `pristine` is that database
    /// before any row was carried over.
    static func update(
        _ carried: Carried, from copy: Connection, to live: Connection, in new: Connection, pristine: Connection,
        _ displacement: Displacement?
    ) throws -> Carried? {
        let content = carried.content
        guard let transfer = carried.transfer else {
            try content.leave(live, displacement)
            return carried
        }
        let update = RowUpdate(transfer, after: carried.outcomes)
        guard let outcomes = try update.run(from: copy, to: live, in: new, pristine: pristine) else { return nil }
        var fates = RowFates()
        for outcome in outcomes { fates.add(outcome) }
        var isAccounted =
            try carried.isAccounted && !fates.keepsAny
            && AppContent.isStillEmpty(
                live, since: copy, selected: content.selected(carried.rules), ignoring: ReleaseMarker.tables)
        if isAccounted {
            displacement?.prove(fates.all, hasContentLeft: false)
        } else {
            isAccounted = try content.prove(live, new, carried.rules, fates, displacement)
        }
        return Carried(
            content: content, rules: carried.rules, transfer: transfer, outcomes: outcomes, isAccounted: isAccounted)
    }

    private func carry(from live: Connection, to new: Connection, _ displacement: Displacement?) throws -> Carried? {
        if carriesNothing {
            try leave(live, displacement)
            return Carried(content: self, rules: [], transfer: nil, outcomes: [], isAccounted: false)
        }
        try refuseForeignRejectTable(live)
        try refuseRenamedTables(live)
        var fates = RowFates()
        var placed: [RowRule] = []
        var unplaced: [(rule: Preservation.Rule, rows: Int)] = []
        let rules = try self.rules.map { rule in
            var rule = rule
            rule.conditions = try RowSelection(table: rule.table, conditions: rule.conditions)
                .conditions(adding: rule.olderConditions, in: live)
            return rule
        }.filter { try selects($0, in: live, &fates) }
        for rule in rules {
            if let placement = rule.placement, try canHold(rule, new) {
                placed.append(try rowRule(rule, placement, new))
            } else {
                let count = try RowSelection(table: rule.table, conditions: rule.conditions).count(in: live)
                if count > 0 { unplaced.append((rule, count)) }
            }
        }
        try refuse(unplaced)
        for (rule, rows) in unplaced { fates.add(rule.table) { $0.kept += rows } }
        let transfer = RowTransfer(
            rules: placed, rejects: RejectTable(name: ReleaseMarker.rejects, label: release.description))
        let isComplete = fates.all.allSatisfy(\.isEmpty)
        let outcomes = try transferring { try transfer.run(from: live, to: new) }
        for outcome in outcomes { fates.add(outcome) }
        let isAccounted = try prove(live, new, rules, fates, displacement)
        guard isComplete else { return nil }
        return Carried(content: self, rules: rules, transfer: transfer, outcomes: outcomes, isAccounted: isAccounted)
    }

    /// Leaves all old content behind. The rows are counted for information, if they can be read.
    private func leave(_ live: Connection, _ displacement: Displacement?) throws {
        do {
            let rows = try AppContent.rowCounts(of: live, ignoring: ReleaseMarker.tables)
            // A copy of an empty file has one page, and nothing to keep.
            if try live.int("PRAGMA page_count") == 1, try live.int("SELECT count(*) FROM sqlite_schema") == 0 {
                return
            }
            displacement?.keepAll(rows: rows)
        } catch let error as MoultError where error.code == .databaseCorrupt { displacement?.keepAll(rows: nil) }
    }

    private func selected(_ rules: [Preservation.Rule]) -> [SQLName: [String?]] {
        rules.reduce(into: [:]) { $0[SQLName($1.table)] = $1.conditions }
    }

    /// Gives the gate the proof for the old content. Returns whether nothing but selected rows differs from the shipped content.
    private func prove(
        _ live: Connection, _ new: Connection, _ rules: [Preservation.Rule], _ fates: RowFates,
        _ displacement: Displacement?
    ) throws -> Bool {
        var fates = fates
        let more = try isForeign ? 0 : RejectTable(name: ReleaseMarker.rejects, label: "").recordsWithMore(in: live)
        if more > 0 { fates.add(ReleaseMarker.rejects) { ($0.kept, $0.incomplete) = ($0.kept + more, more) } }
        switch old {
        case .foreign:
            displacement?.prove(fates.all, hasContentLeft: true)
            return false
        case .takenOver:
            let counts = try AppContent.rowCounts(of: live, ignoring: ReleaseMarker.tables)
            for (table, rows) in counts.sorted(by: { $0.key < $1.key }) where rows > 0 {
                fates.add(table.text) {
                    let complete = $0.carried - $0.incomplete + $0.rejected
                    $0.kept = max($0.kept, rows - complete)
                }
            }
            displacement?.prove(fates.all, hasContentLeft: true)
            return false
        case .shipped(let path):
            let pristine = try Connection(path: path, access: .immutable)
            var (isLeft, isRows) = (false, false)
            do {
                // Content that is left behind for another reason than a missing rule is kept as a whole.
                let kept = try fates.keepsAny ? nil : displacement?.rows.map { try KeptRows(at: $0, like: live) }
                let content = try AppContent(
                    of: live, against: pristine, selected: selected(rules), ignoring: ReleaseMarker.tables,
                    keeping: kept)
                try kept?.close()
                isRows = content.isKeptAsRows
                for (table, rows) in content.rows.merging(content.tables, uniquingKeysWith: +) {
                    fates.add(table.text) { $0.kept += rows }
                }
                isLeft = !content.isEmpty || fates.keepsAny
            } catch let error as MoultError where error.code == .databaseCorrupt && acceptsUnpreserved {
                // What cannot be read cannot be compared, so the whole file is kept.
                isLeft = true
            }
            try pristine.close()
            displacement?.prove(fates.all, hasContentLeft: isLeft, isRows: isRows)
            return !isLeft
        }
    }

    /// Throws if the app itself has created a table that has the name of the reject table.
    private func refuseForeignRejectTable(_ live: Connection) throws {
        guard let column = try RejectTable(name: ReleaseMarker.rejects, label: "").missingColumn(in: live) else {
            return
        }
        throw MoultError.foreignRejects(live.path, lacking: column)
    }

    /// Throws if the app has renamed a preserved table: no rule would select it, and its rows would stay behind without the
    /// operator's consent.
    private func refuseRenamedTables(_ live: Connection) throws {
        guard case .shipped(let path) = old, !acceptsUnpreserved else { return }
        let pristine = try Connection(path: path, access: .immutable)
        let tables = rules.filter { !$0.isForeign }.map(\.table)
        let found = try RowSelection.renamedTable(
            of: tables, in: live, shipped: pristine, ignoring: ReleaseMarker.tables)
        try pristine.close()
        if let found { throw MoultError.renamed(database, live.path, found.old, to: found.new, found.rows) }
    }

    /// Returns whether a rule can select rows in the old schema. Conditions that were written for another schema may be invalid
    /// there; so may the installed release's conditions, if the app has changed the table. In a file from before moult, the
    /// rows of such a table count as left in that file.
    private func selects(_ rule: Preservation.Rule, in live: Connection, _ fates: inout RowFates) throws -> Bool {
        // If rows may stay behind, damage in one table must not prevent the transfer of others, so all values are read before.
        let selection = RowSelection(table: rule.table, conditions: rule.conditions)
        switch try selection.reach(in: live, isChecked: !isForeign && !keepsUnselectableRows) {
        case .absent: return false
        case .rows: return true
        case .unselectable(let rows, let cause):
            if isForeign, rows > 0, cause.code == .databaseCorrupt, !acceptsUnpreserved {
                throw MoultError.unreadable(database, rule.table, cause)
            }
            if isForeign || cause.code == .databaseCorrupt { fates.add(rule.table) { $0.kept += rows } }
            if rule.isForeign || keepsUnselectableRows { return false }
            throw MoultError.unselectable(database, rule.table, cause)
        }
    }

    private func canHold(_ rule: Preservation.Rule, _ new: Connection) throws -> Bool {
        try RowSelection.hasTable(rule.placement?.table ?? rule.table, in: new)
    }

    private func rowRule(_ rule: Preservation.Rule, _ placement: Database.Preserve, _ new: Connection) throws -> RowRule
    {
        var (mayBlock, mayFail) = (placement.onReject == .block, placement.onConflict == .fail)
        // The whole file is kept, so a row that does not fit must not block the first release.
        if case .foreign = old { mayBlock = false }
        if decided != nil { (mayBlock, mayFail) = (false, false) }
        // An older release may lack columns of a newer one, even under another name.
        let known = try RowSelection.columns(of: placement.table, in: new)
        return RowRule(
            table: rule.table, conditions: rule.conditions, columns: rule.columns { known.contains(SQLName($0)) },
            earlierRenames: rule.earlierRenames,
            onConflict: placement.onConflict == .keepNew ? .keepNew : mayFail ? .fail : .keepUser,
            onReject: mayBlock ? .block : .record)
    }

    private func refuse(_ unplaced: [(rule: Preservation.Rule, rows: Int)]) throws {
        guard case .shipped = old, !acceptsUnpreserved, let first = unplaced.first(where: { !$0.rule.isForeign }) else {
            return
        }
        throw MoultError.unpreserved(database, release, first.rule.table, first.rows)
    }

    private static func concernsRows(_ error: MoultError) -> Bool {
        [.rowRejected, .rowConflict, .shippedViolation, .selection, .appExtension].contains(error.code)
    }

    private func transferring<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError where Self.concernsRows(error) {
            throw MoultError(
                .preserve, .refused,
                what: "the rows to preserve in \(database.name) do not fit into release \(release)", why: error.problem,
                now:
                    "Nothing was changed. The publisher must publish a release whose \"preserve\" says what to do with these rows.",
                cause: error)
        }
    }
}

extension RowFates {
    fileprivate mutating func add(_ outcome: TableOutcome) {
        add(outcome.table) {
            $0.carried += outcome.carried
            $0.rejected += outcome.rejected
            $0.kept += outcome.incomplete + outcome.unplaced
            $0.incomplete += outcome.incomplete
            $0.displaced += outcome.shippedLosers
        }
    }
}
