internal import CLinux
package import MoultBasics
internal import MoultLibc

extension MoultError.Code {
    /// No store was given, and the current directory has none.
    package static let noStore = Self(920)
}

/// Where the store is that a command line means.
package enum StoreLocation {
    /// The directory named by `--store`, otherwise by MOULT_STORE; otherwise the current directory or `./store`, whichever holds
    /// `moult.json`.
    package static func find(
        option: String?, environment: Environment, from directory: String = "."
    ) throws(MoultError) -> String {
        if let named = option ?? environment["MOULT_STORE"] { return named }
        for candidate in [directory, directory + "/store"] where isStore(candidate) { return candidate }
        throw MoultError(
            .noStore, what: "no store is named, and this directory is not a store",
            why: "neither \(directory)/moult.json nor \(directory)/store/moult.json is there",
            now: "Set one with --store DIR or MOULT_STORE, or create one with moult init or moult apply --create.")
    }

    /// A store without read permission is still a store: the code that reads it reports the reason.
    private static func isStore(_ directory: String) -> Bool {
        access(directory + "/moult.json", F_OK) == 0 || moult_errno() == EACCES
    }
}

extension MoultError {
    /// The same error with the store in the commands that it advises: where they will be run, there may be none or another.
    ///
    /// Errors come from rooms that do not know the command line, so a command is found by how advice is written: behind a
    /// colon, up to a comma, a full stop or the end.
    func naming(store words: [String], in verbs: Set<String>) -> MoultError {
        guard !words.isEmpty, let now else { return self }
        var named = self
        let parts = now.split(separator: ": moult ", omittingEmptySubsequences: false)
        named.now =
            ([String(parts[0])]
            + parts.dropFirst().map { part in
                guard verbs.contains(String(part.prefix { $0 != " " && $0 != "." && $0 != "," })) else {
                    return String(part)
                }
                let end = [", ", ". "].compactMap { part.firstRange(of: $0)?.lowerBound }.min()
                return "\(part[..<(end ?? part.endIndex)]) \(shellLine(words))\(end.map { String(part[$0...]) } ?? "")"
            })
            .joined(separator: ": moult ")
        return named
    }
}
