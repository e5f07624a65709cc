internal import MoultFiles
internal import StepKit

/// The directory of one update in flight: what it stages, and its journal.
struct Transaction {
    let layout: StoreLayout
    let id: String

    var directory: String { layout.transaction(id) }
    var journal: Journal { Journal(in: directory) }
    /// Where the core unpacks.
    var unpacked: String { "\(directory)/unpacked" }
    /// Where future living files wait.
    var waiting: String { "\(directory)/waiting" }
    /// The generation that is made ready.
    var generation: String { "\(directory)/generation" }
    /// A generation of adopted files, made ready.
    var adopted: String { "\(directory)/adopted" }

    /// A generation on its way out lies among the transactions under a name of this form.
    static func trash(_ generation: String, _ layout: StoreLayout) -> Transaction {
        Transaction(layout: layout, id: "trash-\(generation)")
    }
    var isTrash: Bool { id.hasPrefix("trash-") }

    /// Makes the directories; only the store's owner may look into them, because what is in them is not proven yet.
    func create(_ plan: Plan) throws {
        try Files.makeDirectory(directory, mode: 0o700)
        for path in [unpacked, waiting, generation] { try Files.makeDirectory(path, mode: 0o700) }
        try journal.begin(plan)
    }

    /// Removes all of it; the journal first, so that what a crash leaves is rubbish and no unfinished update.
    func remove() throws {
        try Files.remove(journal.path)
        try Files.removeTree(directory)
    }

    /// The inodes of what is staged, by which a settling tells done from not done.
    func inodes() throws -> [String: UInt64] {
        var inodes: [String: UInt64] = [:]
        inodes["generation"] = try Files.facts(generation)?.inode
        inodes["adopted"] = try Files.facts(adopted)?.inode
        for name in try Files.list(waiting) { inodes["waiting/\(name)"] = try Files.facts("\(waiting)/\(name)")?.inode }
        return inodes
    }

    static func all(_ layout: StoreLayout) throws -> [Transaction] {
        try Files.list(layout.transactions).filter { !CacheTag.isTag($0) }.map { Transaction(layout: layout, id: $0) }
    }
}
