internal import MoultFiles

/// The directory of one update in flight.
package struct Transaction {
    package let layout: StoreLayout
    package let id: String
    /// Seconds for which effects wait for programs that have a database locked.
    package var patience = Settings.usualWaitForApps

    package init(layout: StoreLayout, id: String) { (self.layout, self.id) = (layout, id) }

    package static let journalName = "journal.jsonl"

    package var directory: String { layout.transaction(id) }

    /// Whether a name is one that moult gives its transactions: a time and a random number. Nothing else may become a
    /// path.
    package static func isID(_ id: String) -> Bool {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].utf8.count == 14 && parts[0].utf8.allSatisfy { (48...57).contains($0) }
            && parts[1].utf8.count == 8
            && parts[1].utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// A generation on its way out lies among the transactions under a name of this form.
    package static func trash(_ generation: String, _ layout: StoreLayout) -> Transaction {
        Transaction(layout: layout, id: "trash-\(generation)")
    }
    package var isTrash: Bool { id.hasPrefix("trash-") }

    /// Whether moult made the directory: it has a journal, or only what is made before one or left behind it.
    private func isOurs() throws -> Bool {
        guard try Files.facts(directory)?.kind == .directory else { return false }
        if try isTrash || Files.facts("\(directory)/\(Self.journalName)") != nil { return true }
        let names = [
            "unpacked", "waiting", "generation", "adopted", "before", "held", "trial", "copies", "salvaged",
            "manifest.json", "link", "restored.db",
        ]
        return try Files.list(directory).allSatisfy {
            names.contains($0) || $0.hasPrefix("exam") || $0.hasPrefix("step-")
        }
    }

    /// Those of updates, and generations on their way out.
    package static func all(_ layout: StoreLayout) throws -> [Transaction] {
        try Files.list(layout.transactions).map { Transaction(layout: layout, id: $0) }
            .filter { try (isID($0.id) || $0.isTrash) && $0.isOurs() }
    }

    /// The transactions that wait to be settled.
    package static func unfinished(_ layout: StoreLayout) throws -> [Transaction] {
        try all(layout).filter { !$0.isTrash }
    }
}
