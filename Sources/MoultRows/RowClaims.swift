import MoultSQLite

/// The numbers of the old rows that are assigned to rows of a new table.
///
/// Rows are usually carried over in the order of their rowids, so consecutive rowids with consecutive numbers are one run: the memory
/// does not grow with the number of rows.
struct RowClaims {
    private struct Run {
        let first: Int
        let number: Int
        var count = 1
    }

    /// In ascending order of their rowids.
    private var runs: [Run] = []
    private let others = DigestTable()
    private static let maxRuns = 1 << 16

    /// Returns the number of the old row that is assigned to a row; nil if none is.
    func number(of digest: KeyDigest) throws -> Int? {
        if let rowID = digest.rowID, let run = run(of: rowID) { return run.number + (rowID - run.first) }
        return try others.first(of: digest).map { Int($0) }
    }

    mutating func assign(_ number: Int, to digest: KeyDigest) throws {
        guard let rowID = digest.rowID else { return try others.add(Int64(number), of: digest) }
        guard let last = runs.last else { return runs.append(Run(first: rowID, number: number)) }
        let (next, isOverflow) = last.first.addingReportingOverflow(last.count)
        if !isOverflow, rowID == next, number == last.number + last.count {
            runs[runs.count - 1].count += 1
        } else if !isOverflow, rowID > next, runs.count < Self.maxRuns {
            runs.append(Run(first: rowID, number: number))
        } else {
            try others.add(Int64(number), of: digest)
        }
    }

    private func run(of rowID: Int) -> Run? {
        var (low, high) = (0, runs.count)
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].first <= rowID { low = middle + 1 } else { high = middle }
        }
        // The difference of two rowids may be greater than the greatest integer.
        guard low > 0, UInt(bitPattern: rowID &- runs[low - 1].first) < runs[low - 1].count else { return nil }
        return runs[low - 1]
    }
}
