internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension MoultError {
    static func willNotLoad(_ database: Database, _ path: String, _ why: String) throws -> MoultError {
        if try Files.facts(path) == nil { return missing(database, path) }
        return MoultError(.willNotLoad, what: "the database \(path) will not load", why: why, now: .resetting(database))
    }

    static func missing(_ database: Database, _ path: String) -> MoultError {
        MoultError(
            .willNotLoad, what: "the database \(path) is missing",
            why: database.kind.isDisposable
                ? "a program removed it" : "a program removed it, or its disk is not mounted",
            now: database.kind.isSealed
                ? "Install the release again: \(moult: "apply", "RELEASE")" : .resetting(database, isMissing: true))
    }

    static func failedAgain(_ path: String, _ why: String) -> MoultError {
        MoultError(
            .willNotLoad, what: "the database \(path) does not load, although it was just recreated", why: why,
            now:
                "moult did not recreate it again. Check which program damages the file, and whether the disk is failing."
        )
    }

    static func moved(_ database: Database, _ target: String) -> MoultError {
        MoultError(
            .willNotLoad, what: "the database \(database.name) no longer exists", why: "its path was \(target)",
            now: "If the app was moved, install the release from the app's new directory: \(moult: "apply", "RELEASE")")
    }

    /// Returns the error for a store without a release; throws if the directory is not a store.
    static func empty(_ layout: StoreLayout) throws -> MoultError {
        _ = try Settings.written(layout)
        let unfinished = try Unfinished(in: layout)
        return MoultError(
            .store, what: "nothing is installed in \(layout.root)",
            why: unfinished.sentences.first ?? "no release has been installed yet",
            now: !unfinished.isEmpty && unfinished.workers.isEmpty
                ? "Finish or undo it: \(moult: "recover")" : "Install one: \(moult: "apply", "RELEASE")")
    }
}
