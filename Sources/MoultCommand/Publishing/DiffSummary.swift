internal import MoultBasics
internal import MoultPublish

/// A comparison with one line per database, for a plan.
struct DiffSummary {
    let diff: ReleaseDiff

    func write(to page: inout Page) {
        for entry in diff.databases {
            let (name, words) = entry.summary
            page.wrapped("\(name, .heading): \(words)", indent: 2)
        }
        for note in diff.notes { page.wrapped("note: \(note)", indent: 2) }
    }
}

extension ReleaseDiff.Entry {
    fileprivate var summary: (name: String, words: String) {
        switch self {
        case .compared(let database): (database.name, database.summary)
        case .added(let name): (name, "new")
        case .removed(let name): (name, "taken out of service")
        case .kept(let name): (name, "not compared: the store keeps its own file")
        case .unknown(let name, let why): (name, "not compared: \(why)")
        }
    }
}

extension DatabaseDiff {
    fileprivate var summary: String {
        guard differs else { return isSameFile ? "the same file" : "no difference" }
        var parts: [String] = []
        for (count, word) in [(\TableDiff.added, "added"), (\.removed, "removed"), (\.changed, "changed")] {
            let rows = tables.reduce(0) { $0 + $1[keyPath: count] }
            if rows > 0 { parts.append("\(counted(rows, "row")) \(word)") }
        }
        if !schema.isEmpty { parts.append(counted(schema.count, "schema change")) }
        parts += properties.map { "\($0.name) \($0.old) -> \($0.new)" }
        let unread = tables.count { $0.needsOwnLine && !$0.differs }
        if unread > 0 { parts.append("\(counted(unread, "table")) not read") }
        return parts.joined(separator: ", ")
    }
}
