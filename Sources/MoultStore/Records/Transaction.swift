internal import MoultFiles

/// The directory of an unfinished update.
package struct Transaction {
    package let layout: StoreLayout
    package let id: String
    /// How many seconds effects wait for programs that have a database locked.
    package var patience = Settings.defaultWaitForApps

    package init(layout: StoreLayout, id: String) { (self.layout, self.id) = (layout, id) }

    package static let journalName = "journal.jsonl"

    package var directory: String { layout.transaction(id) }

    /// Returns whether a name has the form of a transaction: a time and a random number. Only such names may become paths.
    package static func isID(_ id: String) -> Bool {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].utf8.count == 14 && parts[0].utf8.allSatisfy { (48...57).contains($0) }
            && parts[1].utf8.count == 8
            && parts[1].utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// Returns the directory among the transactions in which a generation is deleted.
    package static func trash(_ generation: String, _ layout: StoreLayout) -> Transaction {
        Transaction(layout: layout, id: "trash-\(generation)")
    }
    package var isTrash: Bool { id.hasPrefix("trash-") }

    /// Returns the transactions of updates, and generations that are being removed. A directory with such a name is moult's,
    /// whatever it contains: steps may stage any files, and a crash may leave the directory without its journal.
    package static func all(_ layout: StoreLayout) throws -> [Transaction] {
        try Files.list(layout.transactions).map { Transaction(layout: layout, id: $0) }
            .filter { try (isID($0.id) || $0.isTrash) && Files.facts($0.directory)?.kind == .directory }
    }

    /// Returns the transactions that need recovery.
    package static func unfinished(_ layout: StoreLayout) throws -> [Transaction] {
        try all(layout).filter { !$0.isTrash }
    }
}
