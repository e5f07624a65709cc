extension TableDiff {
    /// It differs, or nobody knows whether it does.
    package var needsALine: Bool { if case .unread = method { true } else { differs } }

    package func count(of kind: RowSample.Kind) -> Int {
        switch kind {
        case .added: added
        case .removed: removed
        case .changed: changed
        }
    }
}

extension TableDiff.Method {
    /// How rows were found, in a few words.
    package var words: String {
        switch self {
        case .primaryKey(let columns): "primary key \(columns.joined(separator: ", "))"
        case .rowid: "rowid"
        case .content: "content"
        case .counted: "counted: one side only"
        case .unread(let why): "not read: \(why)"
        }
    }
}
