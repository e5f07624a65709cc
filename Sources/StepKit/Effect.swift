public import MoultBasics

/// One thing that a step intends: typed, printable, undoable. A plan is a list of effects.
public struct Effect: Sendable, Equatable {
    /// The name of the step that planned it and will do it.
    public var step: String
    /// When it is done.
    public var phase: Phase
    /// The database that it concerns, if it concerns one.
    public var database: String?
    /// The action.
    public var change: Change

    /// An effect of the step with this name.
    public init(step: String, phase: Phase, database: String? = nil, _ change: Change) {
        (self.step, self.phase, self.database, self.change) = (step, phase, database, change)
    }
}

/// The closed list of what an effect can do. The core does all but `custom`, so that it can journal and undo them.
public enum Change: Sendable, Equatable {
    // check
    /// Nothing is changed; a problem was found to be as it must be.
    case confirm(String)

    // delete
    /// A database of the installed generation goes out of service; its file is kept there.
    case retire(generation: String)
    /// The link of a database that the release no longer has goes.
    case unlink(path: String)
    /// A plain file that was at the path before moult is taken into a generation of its own.
    case adopt(path: String, generation: String)
    /// A writable database goes to quarantine, with everything next to it.
    case quarantine(path: String, why: String, reason: KeptReason)
    /// A writable database moves to the path that the release has for it.
    case move(from: String, path: String)

    // copy
    /// A sealed file from the bundle goes into the new generation.
    case seal(member: String, size: Int)
    /// The file of which a living database is made goes into the new generation, for a later rollback or reset.
    case keepTemplate(member: String, size: Int)
    /// The new generation points at a file that stays where it lies.
    case linkInPlace(target: String, size: Int)
    /// A database of a kept generation comes back into service.
    case restore(generation: String)
    /// The staged generation takes its place among the others.
    case installGeneration(generation: String)
    /// `current` points at another generation: the one rename that moves every sealed database.
    case switchCurrent(to: String, from: String?)
    /// A path of the store becomes a link through `current`.
    case link(path: String, member: String)
    /// A living file is made where none is, from the one that is kept in the generation.
    case create(path: String, size: Int)
    /// A writable database gets the release's content; preserved rows are carried over, other app content is kept.
    case replace(
        path: String, member: String, size: Int, way: Database.Replacement, why: String, reason: KeptReason,
        rows: [RowFate])
    /// The user database is brought to the release's schema by its migrations, in one transaction.
    case migrate(path: String, members: [String], from: Int, to: Int, rows: [RowFate] = [])
    /// Rows of one table come back from a set in quarantine. `generations` shipped the set's content and the installed
    /// one: rows that equal theirs are not the app's.
    case restoreRows(path: String, table: String, set: String, size: Int, generations: [String])
    /// The database stays as it is.
    case keep(why: String)
    /// A cache stays although it does not fit, because a process has it open: a later update recreates it.
    case postpone(path: String, why: String)

    // attach
    /// The databases open together on one connection: the main one, and the others by name.
    case attach(main: String?, names: [String])

    // verify
    /// The methods by which a database is verified.
    case prove([String])

    /// Something that only its step knows how to do and to undo; `text` is what the plan prints.
    case custom(name: String, text: String, with: JSON)
}

extension Effect {
    /// The meaning of the sign before a line of the plan.
    public enum Mark: String, Sendable {
        /// Nothing is changed.
        case none = " "
        /// Something is new.
        case adds = "+"
        /// Something goes away, and is kept where the line says so.
        case removes = "-"
        /// Something is another one afterwards.
        case changes = "~"
        /// Something stays as it is.
        case keeps = "="
    }

    /// The sign of the effect, by what it does.
    public var mark: Mark {
        switch change {
        case .confirm, .attach, .prove: .none
        case .retire, .unlink, .quarantine: .removes
        case .adopt, .restore, .switchCurrent, .replace, .migrate, .move, .restoreRows, .custom: .changes
        case .seal, .keepTemplate, .linkInPlace, .installGeneration, .link, .create: .adds
        case .keep, .postpone: .keeps
        }
    }

    /// Whether the store is another one afterwards.
    public var changesStore: Bool {
        switch change {
        case .confirm, .keep, .postpone, .attach, .prove: false
        case .retire, .unlink, .adopt, .seal, .keepTemplate, .linkInPlace, .restore, .installGeneration, .switchCurrent,
            .link, .create, .quarantine,
            .replace,
            .migrate, .move, .restoreRows, .custom:
            true
        }
    }

    /// Whether it only carries out what another line of the plan says already.
    public var isDetail: Bool {
        switch change {
        case .keepTemplate, .installGeneration, .switchCurrent, .link: true
        default: false
        }
    }

    /// Whether only its step knows how to do it.
    public var isCustom: Bool { if case .custom = change { true } else { false } }

    /// The bytes that it stages on the store's file system.
    public var stagedBytes: Int {
        switch change {
        case .seal(_, let size), .keepTemplate(_, let size), .create(_, let size), .replace(_, _, let size, _, _, _, _),
            .restoreRows(_, _, _, let size, _):
            size
        default: 0
        }
    }

    /// The members of the bundle that it needs.
    public var members: [String] {
        switch change {
        case .seal(let member, _), .keepTemplate(let member, _): [member]
        case .migrate(_, let members, _, _, _): members
        default: []
        }
    }

    /// The text of the plan after the phase and the database.
    public var text: String {
        switch change {
        case .confirm(let text): text
        case .retire(let generation): "out of service, kept for rollback (generation \(generation))"
        case .unlink(let path): "\(path) goes: the release no longer has it"
        case .adopt(let path, let generation): "\(path) was here before moult: kept as generation \(generation)"
        case .seal(_, let size): "\(ByteCount(size)) from the bundle, read-only"
        case .keepTemplate(_, let size): "\(ByteCount(size)) template kept for rollback and reset"
        case .linkInPlace(let target, let size): "\(ByteCount(size)) in place, not copied: \(target)"
        case .restore(let generation): "back from the kept generation \(generation)"
        case .installGeneration(let generation): "generation \(generation)"
        case .switchCurrent(let to, let from): "current: \(from ?? "nothing") -> \(to)"
        case .link(let path, _): "\(path) through current"
        case .create(let path, let size): "\(path) from the template, \(ByteCount(size))"
        case .quarantine(let path, let why, _): "\(path) and its sidecar files go to quarantine: \(why)"
        case .move(let from, let path): "\(from) moves to \(path), with its data"
        case .replace(let path, _, let size, let way, let why, _, let rows):
            (["\(path), \(ByteCount(size)), \(way == .live ? "in place" : "by exchange"): \(why)"]
                + rows.map(\.plannedText)).joined(separator: "; ")
        case .migrate(let path, let members, let from, let to, let rows):
            (["\(path): \(counted(members.count, "migration")), user_version \(from) -> \(to)"]
                + rows.map(\.migratedText)).joined(separator: "; ")
        case .restoreRows(let path, let table, let set, _, _): "\(path): rows of \(table) come back from \(set)"
        case .keep(let why): why
        case .postpone(let path, let why): "\(path) stays for now: \(why)"
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
