internal import MoultBasics
internal import MoultEngine
internal import MoultFiles
package import MoultStore
package import StepKit

extension Orchestrator {
    /// Makes a store, in a directory that may be there already with files in it; refuses to make it twice.
    package static func create(at root: String, _ settings: Settings, mode: UInt32 = 0o755) throws {
        let layout = try StoreLayout(root: root)
        if try Files.facts(layout.settings) != nil {
            throw MoultError(
                .store, .refused, what: "\(layout.root) is a store already", why: "\(layout.settings) is there",
                now: "Change that file, or name another directory.")
        }
        try Files.ensureDirectory(layout.root, mode: mode)
        for directory in [
            layout.hidden, layout.generations, layout.transactions, layout.downloads, layout.quarantine, layout.leases,
        ] {
            try Files.ensureDirectory(directory)
        }
        // What can be made again says so to backup tools.
        try CacheTag.put(in: layout.downloads)
        // The lock's file is made here, so that a command which in the end refuses leaves no trace at all.
        _ = try StoreLock.takeIfFree(layout)
        // Every user may read the settings, unless a secret is in them.
        let hasSecrets = settings.feed?.addresses.contains(where: \.hasSecrets) ?? false
        try Files.replace(
            layout.settings, with: Array(settings.written.pretty.utf8), mode: hasSecrets ? 0o600 : 0o644)
        try Files.syncDirectory(layout.hidden)
    }

    /// Makes the store that a release needs if there is none yet: what an app does at its first start.
    package func createIfMissing(for manifest: String, follow: Policy.Follow) throws {
        guard try Files.facts(layout.settings) == nil else { return }
        let bytes = try Planner.manifestBytes(manifest)
        let product = try Manifest(parsing: bytes, as: .sealed, source: manifest).product
        try Self.create(at: layout.root, Settings(product: product, follow: follow))
    }
}
