internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// The only gate through which the content of a writable database is replaced, migrated or removed.
/// The gate requires a proof that the old content is expendable, computed while the database is held. Content without such a
/// proof goes to quarantine before the decision.
final class Displacement {
    private(set) var directory: String
    /// The path of the file while the database is held; the record has the path at which apps know the database.
    private let place: String
    private var record: QuarantineRecord
    /// Where the rows that are left behind are collected; nil if the whole content is kept in any case.
    let rows: String?
    private(set) var isKept = false
    private(set) var fates: [RowFate] = []

    init(place: String, directory: String, record: QuarantineRecord, rows: String? = nil) {
        (self.place, self.directory, self.record, self.rows) = (place, directory, record, rows)
    }

    // MARK: proving

    /// Sets the fate of the rows. `hasContentLeft` means that some of the old content is neither shipped nor in the new content;
    /// `isRows`, that all of this is in `rows`.
    func prove(_ fates: [RowFate], hasContentLeft: Bool, isRows: Bool = false) {
        self.fates = fates.filter { !$0.isEmpty }
        isKept = hasContentLeft
        record.isRows = isRows
        record.rows = Dictionary(fates.filter { $0.kept > 0 }.map { (SQLName($0.table), $0.kept) }) { $0 + $1 }
    }

    /// Keeps the complete content, of which nothing is carried over; `rows` are the rows in each table, if known.
    func keepAll(rows: [SQLName: Int]?) { (isKept, record.rows) = (true, rows?.filter { $0.value > 0 }) }

    /// Keeps the content as that of another program, which has put it there during an update.
    func keepAsForeign() {
        (record.reason, record.kind, record.release) = (.foreign, .user, "")
        record.why = "another program put this content there during an update"
    }

    // MARK: keeping

    /// The file to keep, if `copy` has the whole content.
    func kept(of copy: String) -> String { record.isRows ? rows ?? copy : copy }

    /// Moves into quarantine a copy that was made while the database was held, or only its rows that are left behind.
    func keep(copy: String) throws {
        let copy = kept(of: copy)
        try begin(Files.factsThroughLinks(place), has: { try NonInvasiveReader.has(copy, allOf: $0) })
        try Files.seal(copy, mode: 0o600)
        try Files.rename(copy, to: file)
        try QuarantineRecord.sync(directory, levels: 3)
    }

    private var file: String { "\(directory)/\(record.keptName)" }

    /// `has` returns whether the content to keep includes that of a file.
    private func begin(_ facts: FileFacts?, has: (String) throws -> Bool) throws {
        try QuarantineRecord.makeParents(of: directory)
        // A set that the same update left before a crash is replaced with the present content, if nothing of the set is missing
        // there.
        try Removable(begun: directory, has: has)?.remove()
        directory = try record.freeDirectory(directory)
        try Files.makeDirectory(directory, mode: 0o700)
        record.owner = facts.map { QuarantineRecord.Owner($0) }
        try record.write(to: directory)
    }

    // MARK: the end of the update

    /// Removes the sets that a transaction put into quarantine if it was not installed, and nothing of them is missing at the
    /// database's path.
    static func removeNeedlessSets(_ transaction: Transaction, _ plan: Plan) throws {
        let roots = Set(
            [transaction.layout.quarantine] + plan.stagedPaths.map { transaction.layout.quarantine(of: $0) })
        for root in roots.sorted() {
            for name in try Files.list(root) where name.hasPrefix("\(transaction.id)-") {
                let directory = "\(root)/\(name)"
                let live = try QuarantineRecord(in: directory).map { plan.places(of: $0.database, transaction.layout) }
                try Removable(begun: directory) { kept in
                    try (live ?? []).contains { try NonInvasiveReader.has($0, allOf: kept) }
                }?.remove()
            }
        }
    }
}

extension Plan {
    /// Returns the paths at which a database's file may be, however far the update got.
    fileprivate func places(of database: String, _ layout: StoreLayout) -> [String] {
        effects.filter { $0.database == database }.map(\.change.traits).filter { $0.handling == .written }.flatMap(
            \.paths
        ).map(layout.file)
    }
}
