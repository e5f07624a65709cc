internal import MoultBasics
internal import MoultSQLite

/// Compares the rows of a table that both sides or only one side may have.
struct TableComparison {
    let name: String
    let old: TableFacts?
    let new: TableFacts?
    private let progress: (_ table: String, _ rows: Int) throws -> Void

    init(old: TableFacts?, new: TableFacts?, progress: @escaping (_ table: String, _ rows: Int) throws -> Void) {
        (self.old, self.new, self.progress) = (old, new, progress)
        name = new?.name ?? old?.name ?? ""
    }

    /// Compares the rows. `canReadRecords` means that the files are complete, and that both tables have the same
    /// columns.
    func diff(
        _ oldConnection: Connection, _ newConnection: Connection, samples: Int, areUTF8: Bool, canReadRecords: Bool
    ) throws -> TableDiff {
        do {
            return try compareRows(
                oldConnection, newConnection, samples: samples, areUTF8: areUTF8, canReadRecords: canReadRecords)
        } catch {
            // Other tables can still be compared.
            guard let need = AppNeed(error) else { throw error }
            let presence: TableDiff.Presence = old == nil ? .added : new == nil ? .removed : .both
            return TableDiff(name: name, presence: presence, method: .unread("it needs the app's \(need)"))
        }
    }

    private func compareRows(
        _ oldConnection: Connection, _ newConnection: Connection, samples: Int, areUTF8: Bool, canReadRecords: Bool
    ) throws -> TableDiff {
        guard let old, let new, old.obstacle == nil, new.obstacle == nil else {
            return try counted(oldConnection, newConnection)
        }
        guard old.parts.isEmpty == new.parts.isEmpty else {
            return TableDiff(
                name: name, presence: .both, method: .unread("only one side stores the text of this index"))
        }
        if !old.parts.isEmpty {
            return try compareParts(old, new, oldConnection, newConnection, areUTF8: areUTF8)
        }
        var match = RowMatch(old: old, new: new, areUTF8: areUTF8)
        if case .key = match.walk, try hasNullKeys(old, oldConnection) || hasNullKeys(new, newConnection) {
            match = RowMatch(old: old, new: new, areUTF8: areUTF8, by: .content)
        }
        let roots = match.isByRowID && canReadRecords ? roots : nil
        let walk = RowWalk(match: match, roots: roots) { try progress(name, $0) }
        var tally = RowTally(columns: match.columns.count, limit: samples)
        switch match.walk {
        case .key, .rowIDKey: try compare(by: walk, oldConnection, newConnection, &tally)
        case .position(let keyColumns):
            let keyed = RowMatch(old: old, new: new, areUTF8: areUTF8, by: .key)
            do {
                let strays = try strays(walk, keyColumns, oldConnection, newConnection) {
                    guard case .key = keyed.walk else { return false }
                    return try !hasNullKeys(old, oldConnection) && !hasNullKeys(new, newConnection)
                }
                tally.rows = strays.rows
                try strays.found.resolve(match, oldConnection, newConnection, &tally)
            } catch is TooManyStrays {
                let walk = RowWalk(match: keyed, roots: nil) { try progress(name, $0) }
                try compare(by: walk, oldConnection, newConnection, &tally)
                return tally.result(name, keyed)
            }
        case .none:
            let strays = try StrayRows()
            tally.rows.before = try read(oldConnection, match.oldSQL) {
                try strays.add($0, .old, at: $1, key: 0..<0, content: match.content)
            }
            tally.rows.after = try read(newConnection, match.newSQL) {
                try strays.add($0, .new, at: $1, key: 0..<0, content: match.content)
            }
            try strays.resolve(match, oldConnection, newConnection, &tally)
        }
        return tally.result(name, match)
    }

    /// Compares the tables of an index that stores no text. Equal texts may have different indexes, but equal indexes have equal
    /// texts.
    private func compareParts(
        _ old: TableFacts, _ new: TableFacts, _ oldConnection: Connection, _ newConnection: Connection, areUTF8: Bool
    ) throws -> TableDiff {
        var diff = TableDiff(name: name, presence: .both, method: .index)
        for part in Set((old.parts + new.parts).map { SQLName($0.name) }).sorted() {
            let (one, other) = (old.part(part), new.part(part))
            let found = try TableComparison(old: one, new: other) { _, rows in try progress(name, rows) }
                .diff(oldConnection, newConnection, samples: 0, areUTF8: areUTF8, canReadRecords: false)
            diff.rowsBefore += found.rowsBefore
            diff.rowsAfter += found.rowsAfter
            diff.added += found.added
            diff.removed += found.removed
            diff.changed += found.changed
        }
        return diff
    }

    private func compare(
        by walk: RowWalk, _ oldConnection: Connection, _ newConnection: Connection, _ tally: inout RowTally
    ) throws {
        let empty = tally
        try walk.walk(oldConnection, newConnection) { differences in
            tally = empty
            tally.rows = try differences { kind, old, new in try tally.record(kind, old, new, walk.match.shown) }
        }
    }

    /// Thrown if so many rows have moved that matching by key is faster.
    private struct TooManyStrays: Error {}
    private static let strayLimit = 10_000

    /// Returns the unmatched rows. Throws `TooManyStrays` if there are many, and `haveKeys` reports that each row can be found
    /// by its key.
    private func strays(
        _ walk: RowWalk, _ keyColumns: Int32, _ oldConnection: Connection, _ newConnection: Connection,
        haveKeys: @escaping () throws -> Bool
    ) throws -> (found: StrayRows, rows: RowWalk.Counts) {
        let content = walk.match.content
        let key = content.lowerBound..<(content.lowerBound + keyColumns)
        return try walk.walk(oldConnection, newConnection) { differences in
            let strays = try StrayRows()
            var count = 0
            let rows = try differences { kind, old, new in
                count += 1
                if try count == Self.strayLimit && haveKeys() { throw TooManyStrays() }
                if kind != .added { try strays.add(old, .old, at: old.int64(0), key: key, content: content) }
                if kind != .removed { try strays.add(new, .new, at: new.int64(0), key: key, content: content) }
            }
            return (strays, rows)
        }
    }

    /// Returns whether the primary key has NULLs: a table with a rowid may have several such rows.
    private func hasNullKeys(_ table: TableFacts, _ connection: Connection) throws -> Bool {
        guard table.rowIDName != nil, !table.primaryKey.isEmpty else { return false }
        let isNull = table.primaryKey.map { "\(quoteIdentifier($0)) IS NULL" }.joined(separator: " OR ")
        let name = "main.\(quoteIdentifier(table.name))"
        return try connection.int("SELECT EXISTS (SELECT 1 FROM \(name) WHERE \(isNull))") == 1
    }

    private var roots: (old: Int64, new: Int64)? {
        guard let old = old?.rootPage, let new = new?.rootPage else { return nil }
        return (old, new)
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

    /// Returns the counts for a table that only one side has, so that all its rows were added or removed, or whose rows cannot
    /// be read.
    private func counted(_ oldConnection: Connection, _ newConnection: Connection) throws -> TableDiff {
        let presence: TableDiff.Presence = old == nil ? .added : new == nil ? .removed : .both
        let isIndex = (old ?? new)?.parts.isEmpty == false
        var diff = TableDiff(name: name, presence: presence, method: isIndex ? .index : .counted)
        if let obstacle = old?.obstacle ?? new?.obstacle {
            diff.method = .unread(obstacle)
            return diff
        }
        func rows(_ table: TableFacts?, _ connection: Connection) throws -> Int {
            guard let table else { return 0 }
            return try (table.parts.isEmpty ? [table] : table.parts).reduce(0) {
                $0 + (try connection.rowCount($1.name))
            }
        }
        do {
            diff.rowsBefore = try rows(old, oldConnection)
            diff.rowsAfter = try rows(new, newConnection)
        } catch {
            guard AppNeed(error) != nil, let sqlite = error.sqlite else { throw error }
            diff.method = .unread(sqlite.message)
            return diff
        }
        (diff.removed, diff.added) = (diff.rowsBefore, diff.rowsAfter)
        return diff
    }
}
