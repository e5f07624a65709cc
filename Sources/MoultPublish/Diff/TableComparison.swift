internal import MoultBasics
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Compares the rows of a table that both sides or only one side may have.
struct TableComparison {
    struct Side {
        let connection: Connection
        let schema: Schema
        let tables: [SQLName: ListedTable]

        init(_ connection: Connection) throws {
            self.connection = connection
            schema = try Schema(of: connection, ignoring: ReleaseMarker.tables)
            tables = schema.withRows
        }
    }

    private let key: SQLName
    private let name: String
    private let old: Side
    private let new: Side
    private let presence: TableDiff.Presence
    private let progress: (_ table: String, _ rows: Int) throws -> Void

    init(_ key: SQLName, old: Side, new: Side, progress: @escaping (_ table: String, _ rows: Int) throws -> Void) {
        (self.key, self.old, self.new, self.progress) = (key, old, new, progress)
        let (one, two) = (old.schema.all[key] ?? old.tables[key], new.schema.all[key] ?? new.tables[key])
        name = (two ?? one)?.shown ?? key.text
        presence = one == nil ? .added : two == nil ? .removed : .both
    }

    func diff(samples: Int, mayReadFiles: Bool) throws -> TableDiff {
        do {
            guard let one = try old.schema.table(key), let two = try new.schema.table(key), one.obstacle == nil,
                two.obstacle == nil
            else { return try counted() }
            let parts = (old: old.schema.parts(ofIndex: key), new: new.schema.parts(ofIndex: key))
            guard parts.old.isEmpty == parts.new.isEmpty else {
                return TableDiff(
                    name: name, presence: .both, method: .unread("only one side stores the text of this index"))
            }
            if !parts.old.isEmpty { return try compareParts(Set(parts.old + parts.new), mayReadFiles: mayReadFiles) }
            let tally = RowTally(limit: samples)
            let comparison = try RowComparison(
                .init(one, old.connection), .init(two, new.connection), mayReadFiles: mayReadFiles, areSound: true,
                tick: { [name, progress] in try progress(name, $0) },
                isWanted: { $0 == .changed || tally.wantsSample($0) })
            let rows = try comparison.run { try tally.add($0, $1, $2, comparison) }
            return tally.result(name, comparison, rows)
        } catch {
            // Other tables can still be compared.
            guard Connection.needsApp(error) else { throw error }
            // SQLite does not name the collation in which a table WITHOUT ROWID is stored.
            let collation = try old.connection.missingCollations(of: name).first.map { "collation \"\($0)\"" }
            let need = AppNeed(error).map { "\($0)" } ?? collation ?? "collation"
            return TableDiff(name: name, presence: presence, method: .unread("it needs the app's \(need)"))
        }
    }

    /// Compares the tables of an index that stores no text. Equal texts may have different indexes, but equal indexes have equal
    /// texts.
    private func compareParts(_ parts: Set<SQLName>, mayReadFiles: Bool) throws -> TableDiff {
        var diff = TableDiff(name: name, presence: .both, method: .index)
        for part in parts.sorted() {
            let found = try TableComparison(part, old: old, new: new) { [name, progress] _, rows in
                try progress(name, rows)
            }.diff(samples: 0, mayReadFiles: mayReadFiles)
            diff.rowsBefore += found.rowsBefore
            diff.rowsAfter += found.rowsAfter
            diff.added += found.added
            diff.removed += found.removed
            diff.changed += found.changed
        }
        return diff
    }

    /// Returns the counts for a table that only one side has, so that all its rows were added or removed, or whose rows cannot
    /// be read.
    private func counted() throws -> TableDiff {
        var (diff, isIndex) = (TableDiff(name: name, presence: presence, method: .counted), false)
        func rows(_ side: Side) throws -> Int {
            guard let listed = side.tables[key] else { return 0 }
            guard listed.name != nil else { throw Unreadable(why: "its name is not valid UTF-8") }
            if let obstacle = try side.schema.table(key)?.obstacle { throw Unreadable(why: obstacle) }
            let parts = side.schema.parts(ofIndex: key)
            isIndex = isIndex || !parts.isEmpty
            return try (parts.isEmpty ? [key] : parts).reduce(0) {
                $0 + (try side.connection.rowCount(side.schema.all[$1]?.name ?? $1.text))
            }
        }
        do { (diff.rowsBefore, diff.rowsAfter) = (try rows(old), try rows(new)) } catch let unreadable as Unreadable {
            diff.method = .unread(unreadable.why)
            return diff
        } catch {
            guard AppNeed(error) != nil, let sqlite = error.sqlite else { throw error }
            diff.method = .unread(sqlite.message)
            return diff
        }
        if isIndex { diff.method = .index }
        (diff.removed, diff.added) = (diff.rowsBefore, diff.rowsAfter)
        return diff
    }

    private struct Unreadable: Error { let why: String }
}
