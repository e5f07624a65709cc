internal import MoultBasics
internal import MoultEngine
internal import MoultFiles
package import MoultStore
package import MoultTrust
internal import StepKit

extension Orchestrator {
    /// Makes a store, in a directory that may be there already with files in it. If a store is there, its settings stay, and
    /// those of these names must be what is wanted; false in this case.
    @discardableResult
    package static func create(
        at root: String, _ settings: Settings, wanting names: [String] = ["product"]
    ) throws -> Bool {
        let layout = try StoreLayout(root: root)
        if let file = layout.onlyFile {
            throw MoultError(
                .store, .refused, what: "cannot create a store at \(layout.root)",
                why: "a directory with this name belongs to the file \(file) and is created by moult replace",
                now: "Choose another name, or replace the file: \(shellLine(["moult", "replace", file])) NEW.db")
        }
        return try create(layout, settings, wanting: names, mode: 0o755)
    }

    /// The same for a store of one file, too.
    @discardableResult
    static func create(
        _ layout: StoreLayout, _ settings: Settings, wanting names: [String], mode: UInt32
    ) throws -> Bool {
        if try Files.facts(layout.settings) != nil {
            let there = try Settings.written(layout)
            guard let name = names.first(where: { there.written[$0] != settings.written[$0] }) else { return false }
            // A feed's URL may have a password in it.
            let value = there.written[name]?.string.map { ", \"\($0)\"" } ?? ""
            throw MoultError(
                .store, .refused, what: "\(layout.root) is already a store with different settings",
                why: "\(layout.settings) has a different value for \"\(name)\"\(value)",
                now: "Change that file, or name another directory.")
        }
        try PathLimit(layout).proveRoot()
        try Files.ensureDirectories(layout.root, mode: mode)
        for directory in [
            layout.hidden, layout.generations, layout.transactions, layout.downloads, layout.quarantine, layout.leases,
        ] {
            try Files.ensureDirectory(directory)
        }
        // Marks files that can be recreated for backup tools.
        try CacheTag.put(in: layout.downloads)
        // The lock's file is made here, so that a command which in the end refuses leaves no trace at all.
        _ = try StoreLock.takeIfFree(layout)
        // Every user may read the settings, unless a secret is in them.
        let hasSecrets = settings.feed?.addresses.contains(where: \.hasSecrets) ?? false
        try Files.replace(
            layout.settings, with: Array(settings.written.pretty.utf8), mode: hasSecrets ? 0o600 : 0o644)
        try Files.syncDirectory(layout.hidden)
        return true
    }

    /// Makes the store that a release needs if it is missing, as an app does at its first start. False if the store exists.
    package func createIfMissing(for manifest: String, trusting keys: TrustedKeys?) throws -> Bool {
        guard try Files.facts(layout.settings) == nil else { return false }
        var settings = Settings(product: try Self.product(of: manifest), follow: .match)
        settings.keys = keys
        return try Self.create(at: layout.root, settings)
    }

    /// The product of the release with this manifest.
    package static func product(of manifest: String) throws -> String {
        try Manifest(parsing: Planner.manifestBytes(manifest), as: .sealed, source: manifest).product
    }

    /// Runs what installs the first release into the store. If that fails, a store that was made for it goes again: the next
    /// command must not find an empty one.
    package func firstInstalling<R>(isNew: Bool, _ body: () throws -> R) throws -> R {
        do { return try body() } catch {
            if isNew { warning { try Removable.removeUnused(layout) } }
            throw error
        }
    }
}
