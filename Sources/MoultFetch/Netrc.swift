internal import MoultFiles
internal import MoultLibc

/// The user's password file, at the path where libcurl looks for it.
enum Netrc {
    static var path: String? { get throws { try ProcessEnvironment.value("HOME").map { "\($0)/.netrc" } } }

    /// Returns whether other users can read or change the file; if they can, it is not used.
    static func isExposed() throws -> Bool {
        guard let path = try path, let facts = try Files.factsThroughLinks(path) else { return false }
        return facts.mode & 0o077 != 0 || ![0, geteuid()].contains(facts.owner)
    }
}
