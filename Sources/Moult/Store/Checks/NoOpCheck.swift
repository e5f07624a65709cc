internal import MoultFiles
internal import StepKit

/// Checks whether a release is already installed, without writing: with a few small system calls, and by opening
/// databases that have changed since the last check.
package struct NoOpCheck {
    let store: StoreSnapshot

    package init(_ store: StoreSnapshot) { self.store = store }

    /// Returns true if `bytes` is the installed manifest, no update is unfinished, and every database is at its path (an
    /// in-place database must be next to the manifest). A copied store is not current until a command that writes to it has
    /// verified its files. With `reading`, the files are verified now, for a store that cannot be written to.
    package func isCurrent(_ bytes: [UInt8], of manifest: String, reading: Bool = false) throws -> Bool {
        guard let generation = try installed(), generation.bytes == bytes, try Transaction.all(store.layout).isEmpty
        else { return false }
        let directory = try Files.absolute(Files.directory(of: manifest))
        for database in generation.manifest.databases where database.place == .inPlace {
            let target = try Files.target(ofLink: generation.path(database.member))
            if target != "\(directory)/\(database.member)" { return false }
        }
        return try isWhole(generation, reading: reading)
    }

    /// Returns the installed generation; nil if its manifest is damaged.
    private func installed() throws -> Generation? {
        guard let name = try store.installedName else { return nil }
        do { return try store.generation(name) } catch {
            if Files.isDenied(error) { throw error }
            return nil
        }
    }

    /// Returns whether every database of a generation is at its path, and every file of the generation is the verified one.
    package func isWhole(_ generation: Generation, reading: Bool = false) throws -> Bool {
        let assessment = try Assessment(of: generation, in: store)
        for database in generation.manifest.databases {
            let state = try assessment.state(of: database, .glance, reading: reading)
            if state.isUnverified || state.fault != nil || state.refusal != nil { return false }
        }
        return true
    }
}
