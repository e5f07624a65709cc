internal import MoultSQLite

/// One table on both sides, or on one, and what becomes of its rows.
struct TableComparison {
    let name: String
    let old: TableFacts?
    let new: TableFacts?
    private let progress: (_ table: String, _ rows: Int) throws -> Void

    init(old: TableFacts?, new: TableFacts?, progress: @escaping (_ table: String, _ rows: Int) throws -> Void) {
        (self.old, self.new, self.progress) = (old, new, progress)
        name = new?.name ?? old?.name ?? ""
    }

    /// Compares the rows. `canReadRecords`: the files are complete, and both tables have the same columns.
    func diff(
        _ oldConnection: Connection, _ newConnection: Connection, samples: Int, areUTF8: Bool, canReadRecords: Bool
    ) throws -> TableDiff {
        guard let old, let new, old.obstacle == nil, new.obstacle == nil else {
            return try counted(oldConnection, newConnection)
        }
        let match = RowMatch(old: old, new: new, areUTF8: areUTF8)
        let roots = canReadRecords ? try roots(oldConnection, newConnection) : nil
        let walk = RowWalk(match: match, roots: match.isByRowID ? roots : nil) { try progress(name, $0) }
        var tally = RowTally(columns: match.columns.count, limit: samples)
        let empty = tally
        switch match.walk {
        case .key, .rowIDKey:
            try walk.walk(oldConnection, newConnection) { differences in
                tally = empty
                tally.rows = try differences { kind, old, new in try tally.tell(kind, old, new, match.shown) }
            }
        case .position(let keyColumns):
            let key = match.content.lowerBound..<(match.content.lowerBound + keyColumns)
            let strays = try walk.walk(oldConnection, newConnection) { differences in
                let strays = try StrayRows()
                tally.rows = try differences { kind, old, new in
                    if kind != .added {
                        try strays.add(old, .old, at: old.int64(0), key: key, content: match.content)
                    }
                    if kind != .removed {
                        try strays.add(new, .new, at: new.int64(0), key: key, content: match.content)
                    }
                }
                return strays
            }
            try strays.settle(match, oldConnection, newConnection, &tally)
        case .none:
            let strays = try StrayRows()
            tally.rows.before = try read(oldConnection, match.oldSQL) {
                try strays.add($0, .old, at: $1, key: 0..<0, content: match.content)
            }
            tally.rows.after = try read(newConnection, match.newSQL) {
                try strays.add($0, .new, at: $1, key: 0..<0, content: match.content)
            }
            try strays.settle(match, oldConnection, newConnection, &tally)
        }
        return tally.result(name, match)
    }

    private func read(
        _ connection: Connection, _ sql: String, _ body: (borrowing Statement, Int64) throws -> Void
    ) throws -> Int {
        try connection.withStatement(sql) { row in
            var rows = 0
            while try row.step() {
                try body(row, Int64(rows))
                rows += 1
                if rows % 4096 == 0 { try progress(name, 4096) }
            }
            try progress(name, rows % 4096)
            return rows
        }
    }

    private func roots(_ old: Connection, _ new: Connection) throws -> (old: Int64, new: Int64)? {
        func root(_ table: TableFacts?, _ connection: Connection) throws -> Int64? {
            guard let table, !table.isVirtual else { return nil }
            let sql = "SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?1"
            return try connection.int(sql, [.text(table.name)])
        }
        guard let old = try root(self.old, old), let new = try root(self.new, new) else { return nil }
        return (old, new)
    }

    /// For a table that only one side has: all its rows came, or went.
    private func counted(_ oldConnection: Connection, _ newConnection: Connection) throws -> TableDiff {
        let presence: TableDiff.Presence = old == nil ? .added : new == nil ? .removed : .both
        var diff = TableDiff(name: name, presence: presence, method: .counted)
        if let obstacle = old?.obstacle ?? new?.obstacle {
            diff.method = .unread(obstacle)
            return diff
        }
        func rows(_ table: TableFacts?, _ connection: Connection) throws -> Int {
            try table.map { Int(try connection.int("SELECT count(*) FROM main.\(quoteIdentifier($0.name))")) } ?? 0
        }
        diff.rowsBefore = try rows(old, oldConnection)
        diff.rowsAfter = try rows(new, newConnection)
        (diff.removed, diff.added) = (diff.rowsBefore, diff.rowsAfter)
        return diff
    }
}
