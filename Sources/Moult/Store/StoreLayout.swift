internal import MoultBasics
internal import MoultFiles

/// The paths in a store.
package struct StoreLayout: Sendable, Equatable {
    /// The store's directory, as an absolute path.
    package let root: String

    package init(root: String) throws {
        self.root = try Files.absolute(root).withoutFinalSlashes
    }

    package static let settingsName = "moult.json"

    package var settings: String { "\(root)/\(Self.settingsName)" }
    package var hidden: String { Self.hidden(in: root) }
    package var current: String { "\(hidden)/current" }
    /// The record of the last update that is complete (`Announcement`).
    package var announced: String { "\(hidden)/announced" }
    package var generations: String { "\(hidden)/generations" }
    package var transactions: String { "\(hidden)/transactions" }
    package var downloads: String { "\(hidden)/downloads" }
    var downloadLock: String { "\(downloads)/lock" }
    /// The directory of the last seen feed: the feed itself, its signatures, and its serial.
    package var feed: String { "\(hidden)/feed" }
    /// The directory of the key lists that have replaced the pinned keys, with their signatures.
    package var keys: String { "\(hidden)/keys" }
    package var quarantine: String { "\(hidden)/quarantine" }
    /// The directory of the files on which readers hold their leases.
    package var leases: String { "\(hidden)/leases" }
    /// The directory of the records of changed rows; it exists once an app has asked for them.
    package var changes: String { "\(hidden)/changes" }
    package var history: String { "\(hidden)/history.jsonl" }
    /// The directory of the closed parts of the history.
    package var olderHistory: String { "\(hidden)/history" }
    package var lock: String { "\(hidden)/lock" }
    /// The record of the last attempt to update.
    package var attempt: String { "\(hidden)/attempt.json" }
    /// The record of the releases that must not be installed.
    package var holds: String { "\(hidden)/\(Holds.fileName)" }
    /// The record of the trusted programs of steps.
    var trustedSteps: String { "\(hidden)/steps.json" }
    /// The record of metadata that sealed files got after they were sealed.
    package var links: String { "\(hidden)/links.json" }
    /// The record of the checks of databases that apps write to.
    package var checks: String { "\(hidden)/checks.json" }
    /// The directories that every store has. Empty ones may be missing in a copy or a backup, and are created again.
    package var directories: [String] { [hidden, generations, transactions, downloads, quarantine, leases] }
    /// Everything that moult puts into its directory.
    package var own: [String] {
        [
            current, announced, generations, transactions, downloads, feed, keys, quarantine, leases, history,
            olderHistory, changes, lock, links, checks,
            holds, trustedSteps, attempt,
        ]
    }

    package func generation(_ name: String) -> String { "\(generations)/\(name)" }
    func lease(_ generation: String) -> String { "\(leases)/\(generation)" }
    package func transaction(_ id: String) -> String { "\(transactions)/\(id)" }
    /// Returns the path of a file of the store; an absolute path, as for caches in a separate directory, is returned unchanged.
    package func file(_ name: String) -> String {
        name.isAbsolutePath ? name : "\(root)/\(name)"
    }
    /// Returns the name of a writable file in the manifest; an absolute path for a file outside the store.
    package func name(of file: String) -> String {
        file.relative(to: root) ?? file
    }
    /// Returns the path to which a transaction sets a database aside.
    package func quarantined(_ database: String, path: String, by transaction: String) -> String {
        "\(quarantine(of: path))/\(transaction)-\(database)"
    }
    /// Returns the quarantine on the file system of a writable database.
    package func quarantine(of path: String) -> String {
        path.isAbsolutePath ? "\(Self.hidden(in: Files.directory(of: path)))/quarantine" : quarantine
    }
    /// Returns moult's own directory in a store, or in a separate directory for caches.
    package static func hidden(in root: String) -> String { "\(root)/.moult" }

    /// Returns the target of `current` for a generation.
    package static func target(of generation: String) -> String { "generations/\(generation)" }
    /// Returns the target of a read-only database's link.
    package static func link(to member: String) -> String { ".moult/current/\(member)" }
    /// Returns whether the target of a link is inside the `.moult` of a store, this one or another.
    package static func isSealed(_ target: String) -> Bool {
        target.hasPrefix(".moult/") || target.contains("/.moult/")
    }
}

/// The file that tells backup tools to skip a directory, because its content can be recreated (bford.info/cachedir).
package enum CacheTag {
    private static let text =
        "Signature: 8a477f597d28d172789f06886806bc55\n# Created by moult. The content of this directory can be recreated.\n"
    private static let name = "CACHEDIR.TAG"

    package static func put(in directory: String) throws {
        let path = "\(directory)/\(name)"
        if try Files.facts(path) == nil { try Files.writeNew(Array(text.utf8), to: path) }
    }

    /// Removes the tag that earlier versions wrote: backups must include the directory.
    package static func remove(from directory: String) throws { try Files.remove("\(directory)/\(name)") }

    package static func isTag(_ file: String) -> Bool { file == name }
}
