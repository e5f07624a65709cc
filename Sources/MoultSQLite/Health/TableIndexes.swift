/// A table's indexes, described so that scans can compare them with the table. The initializer returns nil if scans cannot do
/// that, so that SQLite must look rows up: for tables without rowid, for partial indexes, for indexes on expressions or virtual
/// generated columns, for the app's collations, and for UTF-16 text, which SQLite orders by its bytes.
struct TableIndexes {
    struct Index {
        let name: String
        let isUnique: Bool
        let keys: [IndexKey.Part]
        /// The position of each key column among the table's scanned columns.
        let columns: [Int32]
    }

    let table: String
    /// The quoted names of the columns that are in any index.
    let columns: [String]
    let rowID: String
    let indexes: [Index]

    init?(_ table: String, in connection: Connection) throws {
        func rows(_ pragma: String, _ name: String) throws -> [[Value]] {
            try connection.query("PRAGMA main.\(pragma)(\(quoteLiteral(.text(name))))")
        }
        guard try !connection.isUTF16 else { return nil }
        // table_list: schema, name, type, ncol, wr, strict.
        guard let entry = try rows("table_list", table).first(where: { $0[0] == .text("main") }),
            entry[2] == .text("table"), entry[4] == .integer(0)
        else { return nil }
        // table_xinfo: cid, name, type, notnull, dflt_value, pk, hidden; hidden is 0, or 3 for stored generated columns.
        var names: [Int64: String] = [:]
        for column in try rows("table_xinfo", table) {
            guard case .integer(let number) = column[0], case .text(let name) = column[1],
                case .integer(let hidden) = column[6]
            else { return nil }
            if hidden == 0 || hidden == 3 { names[number] = name }
        }
        guard let rowID = freeRowIDName(among: names.values) else { return nil }
        var columns: [String] = []
        var indexes: [Index] = []
        // index_list: seq, name, unique, origin, partial.
        for entry in try rows("index_list", table) {
            guard case .text(let name) = entry[1], entry[4] == .integer(0) else { return nil }
            var keys: [IndexKey.Part] = []
            var places: [Int32] = []
            // index_xinfo: seqno, cid, name, desc, coll, key.
            for part in try rows("index_xinfo", name) where part[5] == .integer(1) {
                guard case .integer(let number) = part[1], case .text(let collation) = part[4],
                    let collation = IndexKey.Collation(rawValue: collation.uppercased())
                else { return nil }
                // -1 is the rowid, regardless of its name; -2 is an expression.
                guard number == -1 || names[number] != nil else { return nil }
                let column = names[number].map(quoteIdentifier) ?? rowID
                if !columns.contains(column) { columns.append(column) }
                places.append(Int32(columns.firstIndex(of: column) ?? 0))
                keys.append(.init(isDescending: part[3] == .integer(1), collation: collation))
            }
            guard !keys.isEmpty else { return nil }
            indexes.append(Index(name: name, isUnique: entry[2] == .integer(1), keys: keys, columns: places))
        }
        (self.table, self.columns, self.rowID) = (table, columns, rowID)
        self.indexes = indexes
        for index in indexes where try !isCovered(index, connection) { return nil }
    }

    private var source: String { "main.\(quoteIdentifier(table))" }

    var tableScan: String { "SELECT \((columns + [rowID]).joined(separator: ", ")) FROM \(source) NOT INDEXED" }

    /// Returns the statement that reads only the index, in its order.
    func scan(of index: Index) -> String {
        let names = index.columns.map { columns[Int($0)] } + [rowID]
        return "SELECT \(names.joined(separator: ", ")) FROM \(source) INDEXED BY \(quoteIdentifier(index.name))"
    }

    /// Returns whether SQLite's plan for the scan of an index reads only the index.
    private func isCovered(_ index: Index, _ connection: Connection) throws -> Bool {
        let plan = try connection.query("EXPLAIN QUERY PLAN \(scan(of: index))")
        guard plan.count == 1, case .text(let detail)? = plan.first?.last else { return false }
        return detail.hasPrefix("SCAN ") && detail.hasSuffix(" USING COVERING INDEX \(index.name)")
    }

    /// Returns a short description of the first disagreement between the table and each of its indexes.
    func disagreements(in connection: Connection) throws -> [String] {
        let wanted = try connection.withStatement(tableScan) { statement in
            var sums = [RowSum](repeating: RowSum(), count: indexes.count)
            let rowID = Int32(columns.count)
            while try statement.step() {
                for (number, index) in indexes.enumerated() {
                    try sums[number].add(statement, index.columns, rowID: rowID)
                }
            }
            return sums
        }
        return try zip(indexes, wanted).compactMap { try disagreement(of: $0, with: $1, connection) }
    }

    private func disagreement(of index: Index, with wanted: RowSum, _ connection: Connection) throws -> String? {
        try connection.withStatement(scan(of: index)) { statement in
            var found = RowSum()
            var last = IndexKey(parts: index.keys)
            let columns = index.columns.indices.map(Int32.init)
            let rowID = Int32(index.columns.count)
            while try statement.step() {
                try found.add(statement, columns, rowID: rowID)
                switch try last.replace(by: statement, rowID: rowID) {
                case .before: break
                case .same where !index.isUnique: break
                case .same: return "non-unique entry in index \(index.name)"
                case .behind: return "index \(index.name) is out of order"
                }
            }
            return found == wanted ? nil : "index \(index.name) and table \(table) do not contain the same rows"
        }
    }
}

/// The number of rows and the sum of their hashes, independent of their order.
private struct RowSum: Equatable {
    private var count = 0
    private var sum = 0

    mutating func add(_ row: borrowing Statement, _ columns: [Int32], rowID: Int32) throws {
        // The hash is seeded at random in each process, so that an attacker cannot construct rows with equal sums.
        var hasher = Hasher()
        for column in columns { try row.hashAsKey(column, into: &hasher) }
        hasher.combine(row.int64(rowID))
        count += 1
        sum &+= hasher.finalize()
    }
}
