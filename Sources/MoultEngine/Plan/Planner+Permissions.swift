internal import MoultFiles
internal import MoultStore
internal import StepKit

extension Planner {
    /// Throws if this user may not write to a file or a directory that the plan changes: otherwise a migration or a replacement
    /// would fail later, with an error that does not name the cause. A user who may not write to the store at all can still
    /// read the plan.
    func requireWritable(_ effects: [Effect]) throws {
        guard Files.isWritable(layout.hidden) else { return }
        for effect in effects {
            guard let change = effect.changedFile else { continue }
            let place = layout.file(change.path)
            if change.isInPlace { try Permission.write(place).require("cannot write to \(place)") }
            // In place, SQLite creates its journal next to the file itself.
            try Permission.name(change.isInPlace ? Files.resolved(place) : place).require("cannot change \(place)")
        }
    }
}

extension Effect {
    /// The file of the store that the effect writes to, creates, renames or removes; nil if it changes none.
    fileprivate var changedFile: (path: String, isInPlace: Bool)? {
        switch change {
        case .migrate(let path, _, _, _, _), .restoreRows(let path, _, _, _, _),
            .replace(let path, _, _, .live, _, _, _):
            (path, true)
        case .replace(let path, _, _, .exchange, _, _, _), .quarantine(let path, _, _), .unlink(let path),
            .link(let path, _), .create(let path, _), .adopt(let path, _), .move(let path, _):
            (path, false)
        default: nil
        }
    }
}
