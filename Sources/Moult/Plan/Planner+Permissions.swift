internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

extension Planner {
    /// Throws if this user may not write to a file or a directory that the plan changes: otherwise a later error would not name
    /// the cause. A user who may not write to the store at all can still read the plan.
    func requireWritable(_ effects: [Effect], by release: Manifest) throws {
        for traits in effects.map(\.change.traits) where traits.handling == .written {
            for path in traits.paths { try WritableFile.requireSoleName(layout.file(path)) }
        }
        for effect in effects {
            guard case .replace(let new) = effect.change,
                let encoding = effect.database.flatMap(release.database)?.identity.encoding
            else { continue }
            let place = layout.file(new.path)
            // SQLite could delete the sidecars of an empty file, which may have rows.
            guard try Files.factsThroughLinks(place)?.size ?? 0 > 0 else { continue }
            do {
                try WritableFile.requireSameEncoding(place, Connection.encoding(ofFileAt: place)?.description, encoding)
            } catch let error as MoultError where error.code == .databaseCorrupt {
                // Without a readable header, no connection can have the old encoding.
                continue
            }
        }
        guard try Files.isWritable(layout.hidden) else { return }
        for effect in effects {
            let traits = effect.change.traits
            guard let handling = traits.handling, let path = traits.paths.last else { continue }
            let (place, isInPlace) = (layout.file(path), handling == .written)
            if isInPlace { try Permission.write(place).require("cannot write to \(place)") }
            // In place, SQLite creates its journal next to the file itself.
            try Permission.name(isInPlace ? Files.resolved(place) : place).require("cannot change \(place)")
        }
    }
}
