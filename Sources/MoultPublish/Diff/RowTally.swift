internal import MoultRows
internal import MoultSQLite

/// The differences found in a table so far.
final class RowTally {
    let limit: Int
    private(set) var counts: [RowSample.Kind: Int] = [:]
    /// For each displayed column, the number of changed rows in which it differs.
    private var changes: [Int] = []
    private(set) var samples: [RowSample] = []

    init(limit: Int) { self.limit = limit }

    func wantsSample(_ kind: RowSample.Kind) -> Bool { counts[kind, default: 0] < limit }

    /// Counts a difference. Its rows are read only if a sample is wanted.
    func add(
        _ kind: RowSample.Kind, _ old: borrowing Statement, _ new: borrowing Statement, _ comparison: RowComparison
    ) throws {
        if kind == .changed {
            if changes.isEmpty { changes = Array(repeating: 0, count: comparison.columnNames.count) }
            for column in changes.indices where try !comparison.isSame(column, old, new) { changes[column] += 1 }
        }
        if wantsSample(kind) {
            samples.append(
                RowSample(
                    old: kind == .added ? nil : try SampleValue.all(comparison.oldPlaces, of: old),
                    new: kind == .removed ? nil : try SampleValue.all(comparison.newPlaces, of: new)))
        }
        counts[kind, default: 0] += 1
    }

    func result(_ name: String, _ comparison: RowComparison, _ rows: RowComparison.Counts) -> TableDiff {
        var diff = TableDiff(name: name, presence: .both, method: TableDiff.Method(comparison.key))
        (diff.columns, diff.keyColumns) = (comparison.columnNames, comparison.keyColumns)
        (diff.rowsBefore, diff.rowsAfter) = (rows.old, rows.new)
        (diff.added, diff.removed, diff.changed) = (counts[.added] ?? 0, counts[.removed] ?? 0, counts[.changed] ?? 0)
        diff.changedColumns = zip(diff.columns, changes).filter { $1 > 0 }.map { .init(name: $0, rows: $1) }
        diff.samples = RowSample.Kind.allCases.flatMap { kind in samples.filter { $0.kind == kind } }
        return diff
    }
}

extension TableDiff.Method {
    fileprivate init(_ key: RowComparison.Key) {
        switch key {
        case .primaryKey(let columns): self = .primaryKey(columns)
        case .rowid: self = .rowid
        case .content: self = .content
        }
    }
}
