internal import MoultSQLite

/// The results of a walk over a table so far.
struct RowTally {
    /// The maximum number of samples of each kind.
    let limit: Int
    var rows = RowWalk.Counts()
    private(set) var counts: [RowSample.Kind: Int] = [:]
    /// For each displayed column, the number of changed rows in which it differs.
    private(set) var changes: [Int]
    private(set) var samples: [RowSample] = []

    init(columns: Int, limit: Int) {
        self.limit = limit
        changes = Array(repeating: 0, count: columns)
    }

    func wantsSample(_ kind: RowSample.Kind) -> Bool { counts[kind, default: 0] < limit }

    /// Counts a row without reading it.
    mutating func count(_ kind: RowSample.Kind) { counts[kind, default: 0] += 1 }

    /// Counts a row; only the statements of the sides that have the row are positioned on it.
    mutating func record(
        _ kind: RowSample.Kind, _ old: borrowing Statement, _ new: borrowing Statement, _ shown: Range<Int32>
    ) throws {
        if kind == .changed { try countChanges(old, new, shown) }
        if wantsSample(kind) {
            samples.append(
                RowSample(
                    old: kind == .added ? nil : try SampleValue.all(shown, of: old),
                    new: kind == .removed ? nil : try SampleValue.all(shown, of: new)))
        }
        count(kind)
    }

    private mutating func countChanges(
        _ old: borrowing Statement, _ new: borrowing Statement, _ shown: Range<Int32>
    ) throws {
        var next = shown.lowerBound
        while let column = try old.firstDifference(to: new, in: next..<shown.upperBound) {
            changes[Int(column - shown.lowerBound)] += 1
            next = column + 1
        }
    }

    func result(_ name: String, _ match: RowMatch) -> TableDiff {
        var diff = TableDiff(name: name, presence: .both, method: TableDiff.Method(match.key))
        (diff.columns, diff.keyColumns) = (match.columns, match.keyColumns)
        (diff.rowsBefore, diff.rowsAfter) = (rows.before, rows.after)
        (diff.added, diff.removed, diff.changed) =
            (counts[.added] ?? 0, counts[.removed] ?? 0, counts[.changed] ?? 0)
        diff.changedColumns = zip(match.columns, changes).filter { $1 > 0 }.map { .init(name: $0, rows: $1) }
        diff.samples = RowSample.Kind.allCases.flatMap { kind in samples.filter { $0.kind == kind } }
        return diff
    }
}

extension TableDiff.Method {
    fileprivate init(_ key: RowMatch.Key) {
        switch key {
        case .primaryKey(let columns): self = .primaryKey(columns)
        case .rowid: self = .rowid
        case .content: self = .content
        }
    }
}
