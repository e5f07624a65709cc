internal import Glibc
internal import MoultFiles

/// A directory for files that are only needed for a while; gone with the last reference.
final class ScratchDirectory: Sendable {
    let path: String

    init() throws {
        // Not /tmp first: it may be memory, and databases may be large.
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/var/tmp"
        path = "\(parent)/moult-\(getpid())-\(UInt64.random(in: 1 ... .max))"
        try Files.makeDirectory(path, mode: 0o700)
    }

    deinit {
        // Nothing depends on it being gone, and nobody is left to tell.
        try? Files.removeTree(path)
    }
}
