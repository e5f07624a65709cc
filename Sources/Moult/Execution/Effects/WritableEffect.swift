internal import MoultBasics
internal import StepKit

/// An effect on a database that apps write to, from the hold to the commit.
///
/// An update takes all of these effects through the same stages: hold every database before any is changed, decide, perform,
/// commit. If a database cannot be held, the update ends before anything has changed.
protocol WritableEffect: AnyObject {
    /// The effect in the plan.
    var effect: Effect { get }
    /// The full path of the database, for messages and for syncing its directory.
    var place: String { get }
    /// The gate for the old content, if this effect replaces any.
    var displacement: Displacement? { get }
    /// The fate of the rows in the database's tables.
    var fates: [RowFate] { get }
    /// Whether the effect may wait a long time for other processes' transactions. Such an effect is held first, before the
    /// databases of other effects are locked.
    var waitsForOthers: Bool { get }
    /// The marker that the database has while it is held; nil if it is not held. Recorded with the decision.
    var marker: OldMarker? { get }

    /// What the effect changes in a database of apps; nil if it is unknown.
    var changedRows: DatabaseChanges? { get }
    /// What the operator should know about the change.
    var warnings: [Advice] { get }

    /// Does with a private copy of the database what an update does up to the decision, for a plan.
    func rehearse() throws
    /// Reads the database, and prepares everything that needs no lock. Whatever can be refused is refused here.
    func prepareUnlocked() throws
    /// Takes only the lock, briefly, so that several databases can be tried together. May be called again after `unlock`.
    func acquire() throws
    func unlock() throws
    /// Takes over what apps have written since, and keeps what would be lost; migrations and restores take their lock here. Called once.
    func prepareLocked() throws
    /// Writes as much as possible before the decision, so that a full disk prevents it.
    func copyPages() throws
    /// Makes the changes that can be undone exactly.
    func perform() throws
    func revert() throws
    /// Makes the change final, usually by SQLite's own commit. Returns whether anything was committed: then the update cannot
    /// be undone.
    func commit() throws -> Bool
    /// Ends a commit that threw an error, so that the database can be read.
    func endFailedCommit(_ error: any Error) throws
    /// Gives apps access again.
    func finish() throws
    /// Releases the database without changes.
    func release() throws
}

extension WritableEffect {
    var displacement: Displacement? { nil }
    var fates: [RowFate] { displacement?.fates ?? [] }
    var waitsForOthers: Bool { false }
    var marker: OldMarker? { nil }
    var warnings: [Advice] { [] }
    var changedRows: DatabaseChanges? { nil }
    func rehearse() throws {}
    func prepareUnlocked() throws {}
    func acquire() throws {}
    func unlock() throws {}
    func copyPages() throws {}
    func perform() throws {}
    func revert() throws {}
    func commit() throws -> Bool { false }
    func endFailedCommit(_ error: any Error) throws {}
    func finish() throws {}
}

extension Change {
    /// Returns the change with what happens to the rows of the database.
    func counting(_ fates: [RowFate]) -> Change {
        switch self {
        case .replace(var new):
            new.rows = fates
            return .replace(new)
        case .migrate(let path, let members, let from, let to, _):
            return .migrate(path: path, members: members, from: from, to: to, rows: fates)
        default: return self
        }
    }
}

/// The marker of a database at the decision.
struct OldMarker {
    /// The path in the plan.
    let path: String
    /// The transaction that the marker names; nil if the database has no marker.
    let transaction: String?
}
