import Glibc
import MoultBasics
package import MoultFiles

/// The files that SQLite keeps beside a database; only their names and what the file system says of them.
package struct Sidecars: Equatable, Sendable {
    package struct Sidecar: Equatable, Sendable {
        package var path: String
        package var facts: FileFacts
    }

    package var wal: Sidecar?
    package var sharedMemory: Sidecar?
    package var journal: Sidecar?

    /// What is there now. A database that is reached through links has its sidecars where the file itself is.
    package static func of(_ path: String) throws -> Sidecars {
        let base = resolved(path)
        func sidecar(_ suffix: String) throws -> Sidecar? {
            try Files.facts(base + suffix).map { Sidecar(path: base + suffix, facts: $0) }
        }
        return Sidecars(wal: try sidecar("-wal"), sharedMemory: try sidecar("-shm"), journal: try sidecar("-journal"))
    }

    /// Whether there is a journal that may have to be rolled back. One with an empty or zeroed start is over; SQLite
    /// leaves such ones in some of its modes.
    package func hasHotJournal() throws -> Bool {
        guard let journal, journal.facts.size > 0, let file = try Descriptor.ifThere(journal.path, .read) else {
            return false
        }
        var first: UInt8 = 0
        let count = try withUnsafeMutableBytes(of: &first) { try file.read(into: $0) }
        try file.close()
        return count == 1 && first != 0
    }

    package var isEmpty: Bool { paths.isEmpty }

    /// The paths of those that are there.
    package var paths: [String] { [wal, sharedMemory, journal].compactMap { $0?.path } }

    /// The path of the file itself, behind all links; the path as given if nothing is there.
    static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }
}
