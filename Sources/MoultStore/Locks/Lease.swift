internal import MoultBasics
internal import MoultFiles

/// Holds one generation in place while somebody reads from it: a shared lock on its directory.
///
/// Nothing is written, it works in a read-only store and for other users, and the kernel drops it with the process.
package final class Lease: Sendable {
    package let generation: String
    package let directory: String
    private let lock: FileLock

    private init(generation: String, directory: String, lock: FileLock) {
        (self.generation, self.directory, self.lock) = (generation, directory, lock)
    }

    /// Takes a lease on what is installed now; nil if nothing is.
    package static func take(_ layout: StoreLayout) throws -> Lease? {
        while let name = try Generation.currentName(layout) {
            let directory = layout.generation(name)
            let lock: FileLock?
            do { lock = try FileLock.take(directory, .shared, directory: true) } catch {
                // Collected between the look and the lock: then something newer is current.
                if try Generation.currentName(layout) != name { continue }
                throw error
            }
            // Only a lock that was there while `current` still pointed at the directory keeps it from being collected.
            guard let lock, try Generation.currentName(layout) == name else { continue }
            return Lease(generation: name, directory: directory, lock: lock)
        }
        return nil
    }
}
