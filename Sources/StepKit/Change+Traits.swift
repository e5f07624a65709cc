/// What a change concerns, as one value: the plan, its summary, the checks and the recovery ask this value. The text of a change
/// is in `Effect.text`, and its JSON in `Effect+JSON.swift`.
public struct ChangeTraits: Sendable, Equatable {
    /// How a database with such a change counts in the summary of a plan.
    public enum Count: Sendable {
        /// The content of the database goes out of service.
        case leaves
        /// New content comes into service.
        case arrives
        /// The content changes in place.
        case changes
        /// The content stays.
        case stays
    }

    /// What happens to the file at the path of the change.
    public enum Handling: Sendable {
        /// Only the name changes: the file is created, or a link is put there or removed.
        case named
        /// SQLite writes to the file. Other processes may keep it open.
        case written
        /// The file and its sidecars are renamed into quarantine. No other process may have it open.
        case setAside
    }

    /// The mark in front of the line of the plan.
    public var mark: Effect.Mark
    /// How the database counts; empty if it does not.
    public var counts: [Count] = []
    /// Whether the change only carries out one that another line of the plan already shows.
    public var isDetail = false
    /// The paths of the files that the change concerns: the old path first, the new one last.
    public var paths: [String] = []
    /// What happens to the file; nil if nothing does.
    public var handling: Handling?
    /// Whether apps are asked to close the database first.
    public var takesOutOfUse = false
    /// Whether the new content is staged as a separate file, from which it gets to the path.
    public var isStaged = false
    /// The number of bytes that are staged on the store's file system.
    public var stagedBytes = 0
    /// The members of the bundle that the change needs.
    public var unpacked: [String] = []
    /// The files in generations that the change uses.
    public var members: [String] = []
    /// The names of directories that the change uses: generations, and sets in quarantine.
    public var directories: [String] = []

    fileprivate init(_ mark: Effect.Mark, _ counts: Count...) { (self.mark, self.counts) = (mark, counts) }

    fileprivate func with(_ change: (inout ChangeTraits) -> Void) -> ChangeTraits {
        var traits = self
        change(&traits)
        return traits
    }

    fileprivate func file(_ handling: Handling?, _ paths: String..., takesOutOfUse: Bool = false) -> ChangeTraits {
        with { ($0.handling, $0.paths, $0.takesOutOfUse) = (handling, paths, takesOutOfUse) }
    }

    fileprivate func staging(_ bytes: Int, asFile: Bool = true) -> ChangeTraits {
        with { ($0.stagedBytes, $0.isStaged) = (bytes, asFile) }
    }

    fileprivate func unpacking(_ members: [String]) -> ChangeTraits {
        with { ($0.unpacked, $0.members) = (members, members) }
    }

    fileprivate func using(_ member: String) -> ChangeTraits { with { $0.members = [member] } }
    fileprivate func directories(_ names: [String]) -> ChangeTraits { with { $0.directories = names } }
    fileprivate var detail: ChangeTraits { with { $0.isDetail = true } }
}

extension Change {
    /// The traits of the change.
    public var traits: ChangeTraits {
        switch self {
        case .confirm, .attach, .prove: ChangeTraits(.none)
        case .retire(let generation): ChangeTraits(.removes, .leaves).directories([generation])
        case .unlink(let path): ChangeTraits(.removes).file(.named, path)
        case .displace(let path, _, _): ChangeTraits(.removes, .leaves).file(nil, path)
        case .quarantine(let path, _, _):
            ChangeTraits(.removes, .leaves).file(.setAside, path, takesOutOfUse: true)
        case .seal(let member, let size):
            ChangeTraits(.adds, .arrives).unpacking([member]).staging(size, asFile: false)
        case .keepTemplate(let member, let size):
            ChangeTraits(.adds).unpacking([member]).staging(size, asFile: false).detail
        case .linkInPlace: ChangeTraits(.adds, .arrives)
        case .restore(let generation): ChangeTraits(.changes, .arrives).directories([generation])
        case .installGeneration(let generation): ChangeTraits(.adds).directories([generation]).detail
        case .switchCurrent(let to, let from):
            ChangeTraits(.changes).directories([to] + (from.map { [$0] } ?? [])).detail
        case .link(let path, let member): ChangeTraits(.adds).file(.named, path).using(member).detail
        case .create(let path, let size): ChangeTraits(.adds, .arrives).file(.named, path).staging(size)
        case .replace(let new):
            ChangeTraits(.changes, .leaves, .arrives).using(new.member).staging(new.size)
                .file(.written, new.path, takesOutOfUse: true)
        case .migrate(let path, let members, _, _, _):
            ChangeTraits(.changes, .changes).unpacking(members).file(.written, path, takesOutOfUse: true)
        case .restoreRows(let path, _, let set, let size, let generations):
            ChangeTraits(.changes, .changes).file(.written, path).staging(size, asFile: false)
                .directories([set] + generations)
        case .keep: ChangeTraits(.keeps, .stays)
        case .custom: ChangeTraits(.changes)
        }
    }
}
