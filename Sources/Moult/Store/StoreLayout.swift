internal import MoultBasics
internal import MoultFiles

package struct StoreLayout: Sendable, Equatable {
    package let root: String

    package init(root: String) throws { self.root = try Files.absolute(root).withoutFinalSlashes }

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
    package var leases: String { "\(hidden)/leases" }
    /// The directory of the records of changed rows; it exists once an app has asked for them.
    package var changes: String { "\(hidden)/changes" }
    package var history: String { "\(hidden)/history.jsonl" }
    package var olderHistory: String { "\(hidden)/history" }
    package var lock: String { "\(hidden)/lock" }
    package var attempt: String { "\(hidden)/attempt.json" }
    package var holds: String { "\(hidden)/\(Holds.fileName)" }
    /// The record of the trusted programs of steps.
    var trustedSteps: String { "\(hidden)/steps.json" }
    package var links: String { "\(hidden)/links.json" }
    package var checks: String { "\(hidden)/checks.json" }
    /// The directories that every store has. Empty ones may be missing in a copy or a backup, and are created again.
    package var directories: [String] { [hidden, generations, transactions, downloads, quarantine, leases] }
    package var own: [String] {
        [
            current, announced, generations, transactions, downloads, feed, keys, quarantine, leases, history,
            olderHistory, changes, lock, links, checks, holds, trustedSteps, attempt,
        ]
    }

    package func generation(_ name: String) -> String { "\(generations)/\(name)" }
    func lease(_ generation: String) -> String { "\(leases)/\(generation)" }
    package func transaction(_ id: String) -> String { "\(transactions)/\(id)" }
    /// Returns the path of a file of the store; an absolute path, as for caches in a separate directory, is returned unchanged.
    package func file(_ name: String) -> String { name.isAbsolutePath ? name : "\(root)/\(name)" }
    /// Returns the name of a writable file in the manifest; an absolute path for a file outside the store.
    package func name(of file: String) -> String { file.relative(to: root) ?? file }
    package func quarantined(_ database: String, path: String, by transaction: String) -> String {
        "\(quarantine(of: path))/\(transaction)-\(database)"
    }
    /// Returns the quarantine on the file system of a writable database.
    package func quarantine(of path: String) -> String {
        path.isAbsolutePath ? "\(Self.hidden(in: Files.directory(of: path)))/quarantine" : quarantine
    }
    package static func hidden(in root: String) -> String { "\(root)/.moult" }
    package static func target(of generation: String) -> String { "generations/\(generation)" }
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

extension StoreLayout {
    /// Throws unless a reset of a writable database can move its files: it renames them between these directories after its
    /// decision, and no rename leads from one mounted file system to another.
    func requireOneFileSystem(moving path: String) throws {
        let root = Files.directory(of: file(path))
        let others = path.isAbsolutePath ? [Self.hidden(in: root)] : [hidden, generations, transactions]
        for directory in others + [quarantine(of: path)] {
            // A missing directory is created on the file system of the one above it.
            guard let facts = try Files.factsThroughLinks(directory), let base = try Files.factsThroughLinks(root),
                // A bind mount has the device of the file system that it shows.
                try facts.device != base.device
                    || MountedFileSystem.of(directory)?.mountPoint != MountedFileSystem.of(root)?.mountPoint
            else { continue }
            throw MoultError(
                .refused, .refused, what: "\(file(path)) cannot be set aside",
                why: "\(directory) is on another file system than \(root), so files cannot be moved between them",
                now: "Nothing was changed. Unmount that directory, or replace it with one on the file system of "
                    + "\(root).")
        }
    }
}
