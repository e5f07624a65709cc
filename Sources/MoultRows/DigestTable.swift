import MoultBasics
import MoultSQLite

/// Numbers of rows by the digests of rows. Many of them are in a temporary file, so that the memory does not grow with their number.
final class DigestTable {
    private var recent: [KeyDigest: Int64] = [:]
    /// Further numbers of the digests in `recent`.
    private var further: [KeyDigest: ArraySlice<Int64>] = [:]
    private var count = 0
    /// Nil until there are many numbers.
    private var file: File?
    private static let limit = 1 << 17

    private final class File {
        let connection: Connection
        let first: Statement
        let removal: Statement

        init() throws {
            connection = try Connection.temporary(
                "CREATE TEMP TABLE number (a INT, b INT, n INT, PRIMARY KEY (a, b, n)) WITHOUT ROWID")
            first = try connection.statement("SELECT n FROM temp.number WHERE a = ?1 AND b = ?2 ORDER BY n LIMIT 1")
            removal = try connection.statement("DELETE FROM temp.number WHERE a = ?1 AND b = ?2 AND n = ?3")
        }
    }

    func add(_ number: Int64, of digest: KeyDigest) throws {
        if recent[digest] == nil { recent[digest] = number } else { further[digest, default: []].append(number) }
        count += 1
        if count == Self.limit { try flush() }
    }

    /// Returns the number that was added first; nil if none was.
    func first(of digest: KeyDigest) throws -> Int64? {
        if let file {
            defer { file.first.reset() }
            try file.first.bind(digest.words.0, at: 1)
            try file.first.bind(digest.words.1, at: 2)
            if try file.first.step() { return file.first.int64(0) }
        }
        return recent[digest]
    }

    /// Removes the number that was added first, and returns it.
    func take(of digest: KeyDigest) throws -> Int64? {
        guard let number = try first(of: digest) else { return nil }
        if recent[digest] == number {
            recent[digest] = further[digest]?.popFirst()
        } else if let file {
            defer { file.removal.reset() }
            for (index, value) in [digest.words.0, digest.words.1, number].enumerated() {
                try file.removal.bind(value, at: Int32(index + 1))
            }
            try file.removal.run()
        }
        return number
    }

    private func flush() throws {
        let file = try file ?? File()
        self.file = file
        try file.connection.transaction(.deferred) {
            try file.connection.withStatement("INSERT INTO temp.number VALUES (?1, ?2, ?3)") { insert in
                // In the order of the table, each of its pages is written once.
                for (digest, number) in recent.sorted(by: { $0.key.words < $1.key.words }) {
                    try insert.bind(digest.words.0, at: 1)
                    try insert.bind(digest.words.1, at: 2)
                    for number in [number] + further[digest, default: []] {
                        try insert.bind(number, at: 3)
                        try insert.run()
                        insert.reset()
                    }
                }
            }
        }
        (recent, further, count) = ([:], [:], 0)
    }
}

extension Connection {
    /// Returns a connection with temporary tables, which SQLite stores in an unnamed file, with a small cache.
    static func temporary(_ sql: String) throws -> Connection {
        let connection = try inMemory()
        try connection.execute("PRAGMA temp_store = FILE")
        try connection.run(sql)
        return connection
    }
}

/// The numbers of the old rows that are assigned to rows of a new table. Rows are usually carried over in the order of their
/// rowids, so consecutive rowids with consecutive numbers are one run: the memory does not grow with the number of rows.
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
