internal import StepKit

/// One effect on a database that apps write to, from the hold to the commit.
///
/// An update goes through all of them in the same stages: hold every database before any is changed, decide, perform,
/// commit. What cannot be held ends the update while nothing has changed.
protocol WritableEffect: AnyObject {
    /// The effect of the plan.
    var effect: Effect { get }
    /// The full path of the database, for messages and to sync its directory.
    var place: String { get }
    /// The gate for the old content, if this effect replaces any.
    var displacement: Displacement? { get }
    /// The fate of the rows of its tables.
    var fates: [RowFate] { get }
    /// Whether it waits long for the transactions of other processes, so that nothing else may be locked meanwhile.
    var waitsForOthers: Bool { get }
    /// Numbers that the decision records, so that an undo after a crash can tell what was done.
    var facts: [String: UInt64] { get throws }

    /// Takes only the lock, for a moment, so that several databases can be tried together; may be called again after
    /// `release`. Nothing is read or carried yet.
    func acquire() throws
    /// Takes hold of the database and proves what its old content is worth; called once.
    func hold() throws
    /// Does what an undo can take back exactly.
    func perform() throws
    func revert() throws
    /// Copies what can be copied before the first commit.
    func stage() throws
    /// SQLite's own commit. From here on the update cannot be undone; false if there was nothing to commit.
    func commit() throws -> Bool
    /// Whether the commit was done; only a look can tell after an error.
    func isCommitted() throws -> Bool
    /// Lets apps in.
    func finish() throws
    /// Releases everything without having changed anything.
    func release() throws
}

extension WritableEffect {
    var displacement: Displacement? { nil }
    var fates: [RowFate] { displacement?.fates ?? [] }
    var waitsForOthers: Bool { false }
    var facts: [String: UInt64] { [:] }
    func acquire() throws {}
    func perform() throws {}
    func revert() throws {}
    func stage() throws {}
    func commit() throws -> Bool { false }
    func isCommitted() throws -> Bool { false }
    func finish() throws {}
}
