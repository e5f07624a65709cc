public import MoultBasics

/// A change that a step intends to make, as a value that can be printed and saved. A plan is a list of effects.
public struct Effect: Sendable, Equatable, CustomStringConvertible {
    /// The name of the step that planned the effect; it applies a `custom` change itself.
    public var step: String
    /// The phase in which the effect is applied.
    public var phase: Phase
    /// The database that the effect changes, if any.
    public var database: String?
    /// The change.
    public var change: Change

    /// Creates an effect of the step with this name.
    public init(step: String, phase: Phase, database: String? = nil, _ change: Change) {
        (self.step, self.phase, self.database, self.change) = (step, phase, database, change)
    }

    /// The line of the plan: `copy food: seal food.db, 1.1 MB`.
    public var description: String { "\(phase)\(database.map { " \($0)" } ?? ""): \(text)" }
}

/// The closed list of changes. The core applies all but `custom`, so that it can journal and undo them.
public enum Change: Sendable, Equatable {
    // check
    /// Changes nothing: a requirement was checked and is met.
    case confirm(String)

    // delete
    /// Takes a database of the installed generation out of service; the generation keeps its file.
    case retire(generation: String)
    /// Removes the link of a database that the release no longer has.
    case unlink(path: String)
    /// Takes the whole content of a writable database out of service; other content replaces it in place.
    case displace(path: String, why: String, reason: KeptReason)
    /// Moves a file that SQLite cannot open, or that a link replaces, to quarantine with its sidecars.
    case quarantine(path: String, why: String, reason: KeptReason)

    // copy
    /// Puts a sealed file from the bundle into the new generation.
    case seal(member: String, size: Int)
    /// Puts the template of a writable database into the new generation, for a later rollback or reset.
    case keepTemplate(member: String, size: Int)
    /// Puts a link into the new generation to a file that stays where it is.
    case linkInPlace(target: String, size: Int)
    /// Makes a database of a kept generation current again.
    case restore(generation: String)
    /// Moves the staged generation into place.
    case installGeneration(generation: String)
    /// Points `current` to another generation: the single rename that switches every read-only database.
    case switchCurrent(to: String, from: String?)
    /// Makes a path in the store a link through `current`.
    case link(path: String, member: String)
    /// Creates a missing writable database from the template in the generation.
    case create(path: String, size: Int)
    /// Replaces the content of a writable database, in place. Preserved rows are carried over; other app content is kept.
    case replace(Replacement)
    /// Migrates a user database to the release's schema, in one transaction. `rows` are nil if only `apply` or a deep plan finds out.
    case migrate(path: String, members: [String], from: Int, to: Int, rows: [RowFate]? = nil)
    /// Restores rows of one table from a set in quarantine. `generations` are those that shipped the set's content and the
    /// installed content: rows that they contain were not written by the app.
    case restoreRows(path: String, table: String, set: String, size: Int, generations: [String])
    /// Leaves the database unchanged.
    case keep(why: String)

    // attach
    /// Opens the databases on one connection: the main database, and the others under their names.
    case attach(main: String?, names: [String])

    // verify
    /// Verifies a database with these methods.
    case prove([String])

    /// A change that only its step can apply and undo; the plan prints `text`.
    case custom(name: String, text: String, with: JSON)
}

extension Effect {
    /// The mark in front of a line of the plan.
    public enum Mark: String, Sendable {
        /// Nothing is changed.
        case none = " "
        /// Something is added.
        case adds = "+"
        /// Something is removed, and kept where the line says.
        case removes = "-"
        /// Something changes.
        case changes = "~"
        /// Something stays unchanged.
        case keeps = "="
    }

    /// The mark of the effect.
    public var mark: Mark { change.traits.mark }

    /// Whether the effect changes the store.
    public var changesStore: Bool { mark != .none && mark != .keeps }

    /// Whether the effect only carries out a change that another line of the plan already shows.
    public var isDetail: Bool { change.traits.isDetail }

    /// Whether only the step that planned the effect can apply it.
    public var isCustom: Bool { if case .custom = change { true } else { false } }

    /// The number of bytes that the effect stages on the store's file system.
    public var stagedBytes: Int { change.traits.stagedBytes }

    /// The members of the bundle that the effect needs.
    public var members: [String] { change.traits.unpacked }

    /// The text of the effect in the plan, after the phase and the database.
    public var text: String {
        switch change {
        case .confirm(let text): text
        case .retire(let generation): "out of service, kept for rollback (generation \(generation))"
        case .unlink(let path): "\(path): the link to the read-only file is removed"
        case .seal(_, let size): "\(ByteCount(size)) from the bundle, read-only"
        case .keepTemplate(_, let size): "\(ByteCount(size)) template kept for rollback and reset"
        case .linkInPlace(let target, let size): "\(ByteCount(size)) in place, not copied: \(target)"
        case .restore(let generation): "restored from the kept generation \(generation)"
        case .installGeneration(let generation): "generation \(generation)"
        case .switchCurrent(let to, let from): "current: \(from ?? "nothing") -> \(to)"
        case .link(let path, _): "\(path) through current"
        case .create(let path, let size): "\(path) from the template, \(ByteCount(size))"
        case .displace(let path, let why, _): "\(path): the content goes to quarantine: \(why)"
        case .quarantine(let path, let why, _): "\(path) and its sidecar files go to quarantine: \(why)"
        case .replace(let new): new.text
        case .migrate(let path, let members, let from, let to, let rows):
            (["\(path): \(counted(members.count, "migration")), user_version \(from) -> \(to)"]
                + (rows ?? []).map(\.migratedText)).joined(separator: "; ")
        case .restoreRows(let path, let table, let set, _, _): "\(path): rows of \(table) are restored from \(set)"
        case .keep(let why): why
        case .attach(let main, let names):
            switch (main, names.isEmpty) {
            case (let main?, true): main
            case (let main?, false): "\(main) + \(names.joined(separator: " + "))"
            case (nil, _): names.joined(separator: " + ")
            }
        case .prove(let methods): methods.joined(separator: ", ")
        case .custom(_, let text, _): text
        }
    }
}
