internal import CLinux
internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

enum StoreLocation {
    /// Returns the directory given by `--store`, otherwise by MOULT_STORE; otherwise the first of the current directory and
    /// `./store` that contains `moult.json`.
    static func find(
        option: String?, environment: Environment, from directory: String = "."
    ) throws(MoultError) -> String {
        if let named = option == nil ? try environment.path("MOULT_STORE") : option {
            try requireDirectory(named)
            return named
        }
        for candidate in [directory, directory + "/store"] where isStore(candidate) { return candidate }
        throw MoultError(
            .noStore, what: "no store is specified, and this directory is not a store",
            why: "neither \(directory)/moult.json nor \(directory)/store/moult.json exists",
            now:
                "Specify one with --store DIR or MOULT_STORE. To create one with a release: \(moult: "apply", "--create", "RELEASE")"
        )
    }

    /// Throws if something other than a directory is at the path. The code that reads the directory reports access errors.
    static func requireDirectory(_ path: String) throws(MoultError) {
        let facts: FileFacts?
        do { facts = try Files.factsThroughLinks(path) } catch { return }
        guard let facts, facts.kind != .directory else { return }
        throw MoultError(
            .noStore, what: "\(path) is not a store", why: "it is not a directory",
            now: "Specify the directory of a store with --store DIR.")
    }

    /// Returns whether a directory is a store. A store without read permission still counts: the code that reads it reports the
    /// reason.
    static func isStore(_ directory: String) -> Bool {
        access(directory + "/moult.json", F_OK) == 0 || moult_errno() == EACCES
    }
}
