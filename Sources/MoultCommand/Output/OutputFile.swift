internal import MoultBasics
internal import MoultFiles

/// A file that a verb writes for whoever named it.
enum OutputFile {
    /// Replaces the file with another one.
    static func write(_ bytes: [UInt8], to path: String) throws {
        try requireDirectory(of: path)
        try Files.replace(path, with: bytes)
    }

    /// The error names the directory that is missing, and not the temporary file that could not be made in it.
    static func requireDirectory(of path: String) throws {
        let directory = Files.directory(of: path)
        guard try Files.factsThroughLinks(directory)?.kind != .directory else { return }
        throw MoultError(
            .output, what: "cannot write \(path)", why: "there is no directory \(directory)",
            now: "Make it first, or name another file.")
    }
}
