internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

extension Orchestrator {
    /// Creates a store, in a directory that may already exist and contain files. If the store already exists, returns false: it
    /// keeps its settings, and those listed in `wanting` must match.
    @discardableResult
    package static func create(
        at root: String, _ settings: Settings, wanting names: [String] = ["product"], wait: Int = 0
    ) throws -> Bool {
        let layout = try StoreLayout(root: root)
        if try isThere(layout, settings, wanting: names) { return false }
        try PathLimit(layout).checkRoot()
        try Files.ensureDirectories(layout.root)
        try Files.ensureDirectory(layout.hidden)
        // Another process may create the same store at this moment.
        let lock = try StoreLock.take(layout, wait: max(wait, patience))
        defer { withExtendedLifetime(lock) {} }
        if try isThere(layout, settings, wanting: names) { return false }
        for directory in layout.directories { try Files.ensureDirectory(directory) }
        // Tells backup tools that these files can be recreated.
        try CacheTag.put(in: layout.downloads)
        // Every user may read the settings unless these contain a secret.
        let hasSecrets = settings.feed?.addresses.contains(where: \.hasSecrets) ?? false
        try Files.replace(layout.settings, with: Array(settings.written.pretty.utf8), mode: hasSecrets ? 0o600 : 0o644)
        try Files.syncDirectory(layout.hidden)
        return true
    }

    private static let patience = 5

    /// Returns whether the store exists; throws if its value for one of the named settings differs.
    private static func isThere(_ layout: StoreLayout, _ settings: Settings, wanting names: [String]) throws -> Bool {
        guard try Files.facts(layout.settings) != nil else { return false }
        let there = try Settings.written(layout)
        guard let name = names.first(where: { comparable($0, in: there) != comparable($0, in: settings) }) else {
            return true
        }
        // A feed's URL may contain a password.
        let value = there.written[name]?.string.map { ": \"\($0)\"" } ?? ""
        throw MoultError(
            .store, .refused, what: "\(layout.root) is already a store with different settings",
            why: there.written[name] == nil
                ? "\(layout.settings) has no \"\(name)\""
                : "\(layout.settings) has a different value for \"\(name)\"\(value)",
            now: there.keys == nil && name == "keys"
                ? settings.keys.map(advice(toAdd:)) : "Edit that file, or use another directory.")
    }

    /// Returns the value of a setting for a comparison. The address of a feed may be that of its directory: `init` adds the file
    /// name only if the directory exists.
    private static func comparable(_ name: String, in settings: Settings) -> JSON? {
        let value = settings.written[name]
        let end = "/\(Feed.fileName)"
        guard name == "feed", let value, let address = value["url"]?.string, address.hasSuffix(end) else {
            return value
        }
        return value.setting("url", to: .string(String(address.dropLast(end.utf8.count))))
    }

    /// Returns the advice to add keys to the settings of a store, with the line to insert.
    private static func advice(toAdd keys: TrustedKeys) -> Advice {
        // Spaces, because a long word would be shortened.
        let text = keys.json.line.replacing(":", with: ": ").replacing(",", with: ", ")
        return
            "To trust \(keys.entries.count == 1 ? "this key" : "these keys"), insert this line after the first { in that file: "
            + "\"keys\": \(text),"
    }

    /// Creates the store for a release if it is missing, as an app does at its first start. Returns false if the store exists.
    func createIfMissing(for release: ReleaseFile, trusting keys: TrustedKeys?, wait: Int) throws -> Bool {
        guard try Files.facts(layout.settings) == nil else { return false }
        var settings = Settings(product: try release.product, follow: .match)
        settings.keys = keys
        return try Self.create(at: layout.root, settings, wait: wait)
    }

    /// Runs `body`, which installs the first release. If that fails in a new store, the store is removed, so that the next
    /// command does not find an empty one.
    package func removingStoreOnFailure<R>(isNew: Bool, _ body: () throws -> R) throws -> R {
        do { return try body() } catch {
            if isNew { warning { try Removable.removeUnused(layout) } }
            throw error
        }
    }
}
