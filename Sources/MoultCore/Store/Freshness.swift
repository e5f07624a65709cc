internal import MoultFiles
internal import StepKit

/// Whether a release is what is installed, found out without writing: by a handful of small system calls, and a look into
/// databases that have changed since they were last looked at.
package enum Freshness {
    /// True if `bytes` is the installed manifest, no update is unfinished, and every database is where it must be: one
    /// that is used in place, beside the manifest.
    ///
    /// A store that was copied is not current until a command that writes has verified it. With `reading` it is verified
    /// now: for a store that cannot be written to.
    package static func isCurrent(
        _ bytes: [UInt8], of manifest: String, in layout: StoreLayout, reading: Bool = false
    ) throws -> Bool {
        guard let name = try Generation.currentName(layout),
            try Generation.bytes(of: name, in: layout) == bytes, try Transaction.all(layout).isEmpty
        else { return false }
        let generation = try Generation.load(name, in: layout)
        let directory = try Files.absolute(Files.directory(of: manifest))
        for database in generation.manifest.databases where database.place == .inPlace {
            let target = try Files.target(ofLink: generation.path(database.member))
            if target != "\(directory)/\(database.member)" { return false }
        }
        return try isWhole(generation, in: layout, reading: reading)
    }

    /// Whether every path of a generation is there, and its files are the ones that were proven.
    static func isWhole(_ generation: Generation, in layout: StoreLayout, reading: Bool) throws -> Bool {
        guard let seal = try generation.sealIfSound() else { return false }
        let assessment = try Assessment(of: generation, in: layout, seal)
        for database in generation.manifest.databases {
            guard let entry = seal.entry(database.member) else { return false }
            let file = generation.path(database.member)
            switch try entry.standing(of: file) {
            case .confirmed: break
            case .damaged: return false
            case .unconfirmed: guard reading, try entry.verifiedFacts(of: file) != nil else { return false }
            }
            let path = try layout.place(of: database)
            let isThere =
                database.kind.isSealed
                ? try Files.target(ofLink: path) == StoreLayout.link(to: database.member)
                : try assessment.finding(of: database, .glance).fault == nil
            if !isThere { return false }
        }
        return true
    }
}
