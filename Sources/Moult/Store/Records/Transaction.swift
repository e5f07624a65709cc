internal import MoultFiles

/// The directory of an unfinished update.
package struct Transaction {
    package let layout: StoreLayout
    package let id: String
    package var patience = Settings.defaultWaitForApps

    package let directory: String
    /// Whether the directory is a private one outside of the store, for a plan that stages a release and changes nothing.
    let isRehearsal: Bool

    package init(layout: StoreLayout, id: String) {
        (self.layout, self.id, directory, isRehearsal) = (layout, id, layout.transaction(id), false)
    }

    package init(rehearsing id: String, in scratch: String, _ layout: StoreLayout) {
        (self.layout, self.id, directory, isRehearsal) = (layout, id, "\(scratch)/\(id)", true)
    }

    /// The records of an update that has begun, was decided, or has ended.
    static let (planName, decidedName, endedName) = ("plan.json", "decided.json", "ended.json")

    /// Returns whether a name has the form of a transaction: a time and a random number. Only such names may become paths.
    static func isID(_ id: String) -> Bool {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].utf8.count == 14 && parts[0].utf8.allSatisfy { (48...57).contains($0) }
            && parts[1].utf8.count == 8
            && parts[1].utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// Returns the directory among the transactions in which a generation is deleted.
    package static func trash(_ generation: String, _ layout: StoreLayout) -> Transaction {
        Transaction(layout: layout, id: "trash-\(generation)")
    }
    var isTrash: Bool { id.hasPrefix("trash-") }

    /// The directory for staged writable files. It is removed last, so that what a crash leaves can be recognized even if steps
    /// have staged files of any name.
    static let waitingName = "waiting"

    /// Everything else that moult and its own steps stage.
    private static let names: Set = [
        "unpacked", "generation", "before", "held", "trial", "copies", "salvaged", "steps", "manifest.json",
        "link", "restored.db", "undoing.json",
    ]
    /// The beginnings of numbered names.
    private static let beginnings = ["exam", "step-", "attempt-", "released-", "intent-"]

    /// Returns whether moult created the directory: it has the record of an update, or what an update creates before its first record
    /// or removes after its last one.
    private func isOurs() throws -> Bool {
        guard try Files.facts(directory)?.kind == .directory else { return false }
        // Only the user who runs an update may read its directory; other users learn that it exists.
        if try !Files.isReadable(directory), Permission.read(directory).advice != nil { return true }
        if isTrash { return true }
        let found = try Files.list(directory)
        if found.contains(where: [Self.planName, Self.decidedName, Self.endedName, Self.waitingName].contains) {
            return true
        }
        return try Files.hasOnly(directory) { name in
            // A record that a crash left incomplete has a name of its own.
            Self.names.contains(name) || Self.beginnings.contains { name.hasPrefix($0) }
                || [Self.decidedName, "undoing.json"].contains { name == Files.name(of: Files.staged($0)) }
        }
    }

    /// Returns the transactions of updates, and generations that are being removed.
    package static func all(_ layout: StoreLayout) throws -> [Transaction] {
        try Files.list(layout.transactions).map { Transaction(layout: layout, id: $0) }
            .filter { try (isID($0.id) || $0.isTrash) && $0.isOurs() }
    }

    package static func unfinished(_ layout: StoreLayout) throws -> [Transaction] {
        try all(layout).filter { try !$0.isLeftover }
    }

    /// Whether nothing has to be finished or undone: a generation was being deleted, or an update had not begun or has ended.
    var isLeftover: Bool {
        get throws {
            if try isTrash || isEnded { return true }
            if try !Files.isReadable(directory) { return false }
            return try [Self.planName, Self.decidedName].allSatisfy { try Files.facts("\(directory)/\($0)") == nil }
        }
    }

    var isEnded: Bool { get throws { try Files.facts("\(directory)/\(Self.endedName)") != nil } }
}
