import MoultBasics
import MoultFiles
package import MoultSQLite

/// What happened to a row between two databases.
package enum RowDifference: String, Sendable, CaseIterable {
    case added
    case removed
    case changed
}

/// Compares the rows of a table in two databases: each row is in both, changed, only in the new, or only in the old one. Two rows
/// are the same row if they have the same INTEGER PRIMARY KEY, or the same key of a table WITHOUT ROWID. Without such a key, the
/// rowid shows only the place of a row, and VACUUM may change it: rows that differ at their place are matched one to one by their
/// content, then by primary key, or without one by their place. Tables that have no common order are matched by content alone.
/// Both tables are read once, side by side, with one row of each in memory; unmatched rows wait in a temporary file. Where the
/// files allow it, records are compared as bytes, which is many times faster than reading values. Both connections must be in a
/// transaction.
package struct RowComparison {
    /// One of the tables, and the statements that read it. A row has its rowid or NULL, then all stored columns.
    package struct Side {
        let layout: TableLayout
        let connection: Connection
        /// The place of the first stored column in a row: 0 if a table uses all columns that a statement can have.
        let first: Int32
        private static let maxColumns = 2000

        package init(_ layout: TableLayout, _ connection: Connection) {
            (self.layout, self.connection) = (layout, connection)
            first = layout.columns.count < Self.maxColumns ? 1 : 0
        }

        /// The place of the rowid in a row; nil if it is not there.
        fileprivate var rowID: Int32? {
            layout.rowIDName == nil ? nil : first == 1 ? 0 : layout.rowIDColumn.map { Int32($0) }
        }
        /// The places of the columns that identify a row.
        var identity: [Int32] { layout.isWithoutRowID ? places(layout.primaryKey) : [rowID ?? 0] }
        /// The places of all stored columns.
        var values: Range<Int32> { first..<first + Int32(layout.columns.count) }

        func places(_ columns: [Int]) -> [Int32] { columns.map { first + Int32($0) } }

        fileprivate func sql(_ tail: String = "", mayUseIndex: Bool = false) -> String {
            let columns = (first == 1 ? [layout.rowIDName ?? "NULL"] : []) + layout.columnsSQL
            return "SELECT \(columns.joined(separator: ", ")) FROM \(mayUseIndex ? layout.sql : layout.rows.sql)\(tail)"
        }

        /// Finds a row by its rowid.
        fileprivate var byRowID: String { sql(" WHERE \(layout.rowIDName ?? "NULL") = ?1") }

        fileprivate func inOrder(after last: Int64?) -> String {
            let rowID = layout.rowIDName ?? ""
            return sql("\(last.map { " WHERE \(rowID) > \($0)" } ?? "") ORDER BY \(rowID)")
        }

        /// The rows in the byte order of their key, regardless of its collation.
        fileprivate func inOrder(of key: [Int], isSound: Bool) -> String {
            let order = key.map { "\(layout.columnsSQL[$0]) COLLATE BINARY" }.joined(separator: ", ")
            return sql(" ORDER BY \(order)", mayUseIndex: isSound && !layout.isWithoutRowID)
        }

        fileprivate func readable<R>(_ body: () throws -> R) throws -> R {
            try connection.needsStandIns(layout) ? connection.readingWithStandIns(body) : body()
        }

        /// Returns whether a key has a NULL, and so identifies no row: a table with rowids may have several such rows.
        fileprivate func hasNull(in key: [Int]) throws -> Bool {
            if layout.isWithoutRowID { return false }
            let isNull = key.map { "\(layout.columnsSQL[$0]) IS NULL" }.joined(separator: " OR ")
            return try connection.int("SELECT EXISTS (SELECT 1 FROM \(layout.rows.sql) WHERE \(isNull))") == 1
        }

        fileprivate var rootPage: Int64 {
            get throws {
                let page =
                    try layout.rootPage
                    ?? connection.int(
                        "SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?1",
                        [.text(layout.name)])
                // A virtual table has no pages of its own.
                if page == 0 { throw RecordCursor.Unreadable() }
                return page
            }
        }
    }

    /// Gets each row that is not in both. Only the statements of the sides that have the row are positioned on it, and none for a
    /// difference whose values are not wanted.
    package typealias Handler = (RowDifference, _ old: borrowing Statement, _ new: borrowing Statement) throws -> Void

    package enum Key: Sendable, Equatable {
        case primaryKey([String])
        case rowid
        case content
    }

    package struct Counts {
        package fileprivate(set) var old = 0
        package fileprivate(set) var new = 0
        fileprivate var ticked = 0
        /// The number of records that SQLite had to look up.
        fileprivate var lookups = 0
    }

    private enum Order {
        /// By rowid. If rows may have moved, the rowid is only their place.
        case rowID(mayMove: Bool)
        case key
        case none
    }

    package let key: Key
    let old: Side
    let new: Side
    /// The positions of the columns whose values must be equal, with the key first.
    let pairs: [(old: Int, new: Int)]
    private let order: Order
    /// The number of pairs in the primary key that both tables have.
    private let keyCount: Int
    private let encoding: DatabaseHeader.TextEncoding?
    private let mayReadFiles: Bool
    private let areSound: Bool
    private let isWanted: (RowDifference) -> Bool
    private let tick: (Int) throws -> Void

    /// `pairs` are the columns to compare, by default those with the same names. With `rowsMayMove` false, the rowid always
    /// identifies a row. `mayReadFiles` says that no other process can change the files, `areSound` that no index lacks a row. `isWanted` says whether the handler reads
    /// the values of a difference; `tick` is called regularly with the number of rows read since the last call, and throws to stop.
    package init(
        _ old: Side, _ new: Side, pairs: [(old: Int, new: Int)]? = nil, rowsMayMove: Bool = true,
        mayReadFiles: Bool = true, areSound: Bool = false, tick: @escaping (Int) throws -> Void = { _ in },
        isWanted: @escaping (RowDifference) -> Bool = { _ in true }
    ) throws {
        (self.old, self.new, self.tick, self.isWanted) = (old, new, tick, isWanted)
        (self.mayReadFiles, self.areSound) = (mayReadFiles, areSound)
        let pairs = pairs ?? Self.pairs(old.layout, new.layout)
        let found = Dictionary(pairs.map { ($0.new, $0.old) }) { first, _ in first }
        let both = new.layout.primaryKey.compactMap { found[$0] } == old.layout.primaryKey
        let keyPairs = both ? Array(zip(old.layout.primaryKey, new.layout.primaryKey)) : []
        let inKey = Set(keyPairs.map(\.1))
        self.pairs = keyPairs.map { (old: $0.0, new: $0.1) } + pairs.filter { !inKey.contains($0.new) }
        keyCount = keyPairs.count
        encoding = try Connection.commonEncoding(old.connection, new.connection)
        let names = keyPairs.map { new.layout.columns[$0.1].name }
        let isSameRowID = !keyPairs.isEmpty && old.layout.rowIDColumn != nil && new.layout.rowIDColumn != nil
        if old.rowID != nil, new.rowID != nil {
            order = .rowID(mayMove: rowsMayMove && !isSameRowID)
            key = keyPairs.isEmpty ? .rowid : .primaryKey(names)
        } else if try Self.haveKeys(keyPairs, old, new, encoding) {
            (order, key) = (.key, .primaryKey(names))
        } else {
            (order, key) = (.none, .content)
        }
    }

    /// Returns the positions of columns with the same name, in the order of the new table.
    static func pairs(_ old: TableLayout, _ new: TableLayout) -> [(old: Int, new: Int)] {
        new.columns.indices.compactMap { place in old.place(of: new.columns[place].name).map { ($0, place) } }
    }

    /// Returns whether both tables can be read in the order of a key that identifies each row.
    private static func haveKeys(
        _ pairs: [(Int, Int)], _ old: Side, _ new: Side, _ encoding: DatabaseHeader.TextEncoding?
    ) throws -> Bool {
        guard !pairs.isEmpty, encoding != nil else { return false }
        return try !old.hasNull(in: pairs.map(\.0)) && !new.hasNull(in: pairs.map(\.1))
    }

    /// Whether the rowid identifies each row: it is the key of both tables.
    package var isByRowID: Bool { if case .rowID = order { true } else { false } }

    /// The columns to show: the key comes first.
    package var columnNames: [String] {
        (key == .rowid ? ["rowid"] : []) + pairs.map { new.layout.columns[$0.new].name }
    }
    /// The number of columns of the key among them.
    package var keyColumns: Int { key == .rowid ? 1 : key == .content ? 0 : keyCount }
    /// The places of these columns in the rows of either side.
    package var oldPlaces: [Int32] { (key == .rowid ? [old.rowID ?? 0] : []) + old.places(pairs.map(\.old)) }
    package var newPlaces: [Int32] { (key == .rowid ? [new.rowID ?? 0] : []) + new.places(pairs.map(\.new)) }

    /// Returns whether the rows store the same value in the shown column of this number.
    package func isSame(_ column: Int, _ old: borrowing Statement, _ new: borrowing Statement) throws -> Bool {
        let pair = key == .rowid ? column - 1 : column
        return try pair < 0 || isSame(pairs[pair], old, new)
    }

    func isSame(_ pair: (old: Int, new: Int), _ old: borrowing Statement, _ new: borrowing Statement) throws -> Bool {
        try old.stores(self.old.first + Int32(pair.old), as: new, self.new.first + Int32(pair.new), encoding)
    }

    private func isSame(_ old: borrowing Statement, _ new: borrowing Statement) throws -> Bool {
        for pair in pairs where try !isSame(pair, old, new) { return false }
        return true
    }

    // MARK: the comparison

    /// Calls the handler with each row that is not in both tables, and returns the number of rows. The handler may throw to stop.
    @discardableResult
    package func run(_ handle: Handler) throws -> Counts {
        try old.readable { try new.readable { try compare(handle) } }
    }

    private func compare(_ handle: Handler) throws -> Counts {
        switch order {
        case .key: return try byKey(handle)
        case .rowID(mayMove: false): return try byRowID(isWanted, handle)
        case .rowID(mayMove: true):
            let (strays, oldPlaces, newPlaces) = (
                StrayRows(), old.places(pairs.map(\.old)), new.places(pairs.map(\.new))
            )
            do {
                let counts = try byRowID({ _ in true }) { difference, old, new in
                    if difference != .added { try add(old, isOld: true, self.old, oldPlaces, to: strays) }
                    if difference != .removed { try add(new, isOld: false, self.new, newPlaces, to: strays) }
                }
                try matchByContentAndKey(strays, handle)
                return counts
            } catch is TooManyStrays { return try byKey(handle) }
        case .none: return try byContent(handle)
        }
    }

    /// Thrown if so many rows have moved that it is faster to read both tables in the order of their key.
    private struct TooManyStrays: Error {}
    private static let strayLimit = 10_000

    private func add(
        _ row: borrowing Statement, isOld: Bool, _ side: Side, _ places: [Int32], to strays: StrayRows
    ) throws {
        let place = row.int64(side.rowID ?? 0)
        try strays.add(
            isOld: isOld, at: place,
            // A row without a key is known by its place.
            key: keyCount == 0 ? KeyDigest(rowID: place) : KeyDigest(of: row, places.prefix(keyCount), encoding),
            content: KeyDigest(of: row, places, encoding))
        if strays.count == Self.strayLimit,
            try Self.haveKeys(pairs.prefix(keyCount).map { ($0.old, $0.new) }, old, new, encoding)
        {
            throw TooManyStrays()
        }
    }

    private func matchByContentAndKey(_ strays: StrayRows, _ handle: Handler) throws {
        if strays.count == 0 { return }
        try old.connection.withStatement(old.byRowID) { old in
            try new.connection.withStatement(new.byRowID) { new in
                try strays.forEachPair { oldPlace, newPlace in
                    let difference: RowDifference = newPlace == nil ? .removed : oldPlace == nil ? .added : .changed
                    if isWanted(difference) {
                        try find(oldPlace, old)
                        try find(newPlace, new)
                    }
                    try handle(difference, old, new)
                }
            }
        }
    }

    private func find(_ rowID: Int64?, _ row: borrowing Statement) throws {
        guard let rowID else { return }
        row.reset()
        try row.bind(rowID, at: 1)
        if try row.step() { return }
        throw MoultError(
            .diff, what: "cannot compare the rows of \(row.connection.path)",
            why: "a row disappeared during the comparison",
            now: "Try again when no program is writing to the database.")
    }

    private func byContent(_ handle: Handler) throws -> Counts {
        var counts = Counts()
        let strays = StrayRows()
        try read(old, pairs.map(\.old), isOld: true, strays, &counts)
        try read(new, pairs.map(\.new), isOld: false, strays, &counts)
        try old.connection.withStatement(old.sql()) { old in
            try new.connection.withStatement(new.sql()) { new in
                // Without an order, a row is found again by counting.
                var (oldNumber, newNumber): (Int64, Int64) = (0, 0)
                try strays.forEachSingle { isOld, place in
                    if isOld {
                        if isWanted(.removed) { try Self.skip(to: place, old, &oldNumber) }
                        try handle(.removed, old, new)
                    } else {
                        if isWanted(.added) { try Self.skip(to: place, new, &newNumber) }
                        try handle(.added, old, new)
                    }
                }
            }
        }
        return counts
    }

    private static func skip(to place: Int64, _ row: borrowing Statement, _ number: inout Int64) throws {
        while number <= place {
            guard try row.step() else { return }
            number += 1
        }
    }

    private func read(_ side: Side, _ columns: [Int], isOld: Bool, _ strays: StrayRows, _ counts: inout Counts) throws {
        let places = side.places(columns)
        try side.connection.withStatement(side.sql()) { row in
            var number: Int64 = 0
            while try row.step() {
                let content = try KeyDigest(of: row, places, encoding)
                try strays.add(isOld: isOld, at: number, key: content, content: content)
                number += 1
                try count(isOld ? -1 : 1, &counts)
            }
        }
        try finish(&counts)
    }

    private func byKey(_ handle: Handler) throws -> Counts {
        let keys = (old: pairs.prefix(keyCount).map(\.old), new: pairs.prefix(keyCount).map(\.new))
        let (oldPlaces, newPlaces) = (old.places(keys.old), new.places(keys.new))
        var counts = Counts()
        try old.connection.withStatement(old.inOrder(of: keys.old, isSound: areSound)) { old in
            try new.connection.withStatement(new.inOrder(of: keys.new, isSound: areSound)) { new in
                try merge(old, new, &counts, handle) { try $0.order(oldPlaces, against: $1, newPlaces, encoding) }
            }
        }
        try finish(&counts)
        return counts
    }

    private func byRowID(_ isWanted: (RowDifference) -> Bool, _ handle: Handler) throws -> Counts {
        var counts = Counts()
        var last: Int64?
        let isRead = try canReadRecords && byRecords(&counts, &last, isWanted, handle)
        if !isRead {
            // SQLite reads the remaining rows, and reports any fault.
            let (oldID, newID) = (old.rowID ?? 0, new.rowID ?? 0)
            try old.connection.withStatement(old.inOrder(after: last)) { old in
                try new.connection.withStatement(new.inOrder(after: last)) { new in
                    try merge(old, new, &counts, handle) { Statement.order($0.int64(oldID), $1.int64(newID)) }
                }
            }
        }
        try finish(&counts)
        return counts
    }

    private func merge(
        _ old: borrowing Statement, _ new: borrowing Statement, _ counts: inout Counts, _ handle: Handler,
        _ compare: (borrowing Statement, borrowing Statement) throws -> Int
    ) throws {
        var (hasOld, hasNew) = (try old.step(), try new.step())
        while hasOld || hasNew {
            let order = !hasOld ? 1 : !hasNew ? -1 : try compare(old, new)
            if order != 0 {
                try handle(order < 0 ? .removed : .added, old, new)
            } else if try !isSame(old, new) {
                try handle(.changed, old, new)
            }
            if order <= 0 { hasOld = try old.step() }
            if order >= 0 { hasNew = try new.step() }
            try count(order, &counts)
        }
    }

    private func count(_ order: Int, _ counts: inout Counts, rows: Int = 1) throws {
        if order <= 0 { counts.old += rows }
        if order >= 0 { counts.new += rows }
        if counts.old + counts.new - counts.ticked >= 4096 { try finish(&counts) }
    }

    private func finish(_ counts: inout Counts) throws {
        try tick(counts.old + counts.new - counts.ticked)
        counts.ticked = counts.old + counts.new
    }

    // MARK: records

    /// Whether rows with the same bytes have the same values.
    private var canReadRecords: Bool {
        get throws {
            let (one, two) = (old.layout, new.layout)
            // A record may end before columns that were added later, which then have their default.
            guard mayReadFiles, encoding != nil, one.rowIDColumn == two.rowIDColumn,
                pairs.count == min(one.columns.count, two.columns.count), pairs.allSatisfy({ $0.old == $0.new }),
                zip(one.record, two.record).allSatisfy({ $0.hasBytes(of: $1) }), !one.isVirtual, !two.isVirtual
            else { return false }
            return try old.connection.isWholeFile && new.connection.isWholeFile
        }
    }

    /// Compares the records of both files up to the first that cannot be read, and sets `last` to the last rowid that is done. Returns
    /// false if rows are left for SQLite, which also reads them faster if many differ.
    private func byRecords(
        _ counts: inout Counts, _ last: inout Int64?, _ isWanted: (RowDifference) -> Bool, _ handle: Handler
    ) throws -> Bool {
        do {
            var olds = try RecordCursor(old.connection, rootPage: old.rootPage)
            var news = try RecordCursor(new.connection, rootPage: new.rootPage)
            let oldRow = try old.connection.statement(old.byRowID)
            let newRow = try new.connection.statement(new.byRowID)
            var (hasOld, hasNew) = (try olds.next(), try news.next())
            while hasOld || hasNew {
                let order = !hasOld ? 1 : !hasNew ? -1 : Statement.order(olds.rowID, news.rowID)
                let skipped = try order == 0 ? olds.skipLeaf(ifSameAs: &news) : nil
                if skipped == nil, order != 0 || !olds.isSame(as: news) {
                    let difference: RowDifference = order == 0 ? .changed : order < 0 ? .removed : .added
                    if order == 0 || isWanted(difference) {
                        // A look-up takes longer than a step, so many are not worthwhile.
                        counts.lookups += 1
                        if counts.lookups > 10_000, counts.lookups > (counts.old + counts.new) / 6 { return false }
                        if order <= 0, try !oldRow.find(olds.rowID) { return false }
                        if order >= 0, try !newRow.find(news.rowID) { return false }
                    }
                    // Different bytes may be the same values.
                    if try order != 0 || !isSame(oldRow, newRow) { try handle(difference, oldRow, newRow) }
                }
                last = order > 0 ? news.rowID : olds.rowID
                if order <= 0 { hasOld = try olds.next() }
                if order >= 0 { hasNew = try news.next() }
                try count(order, &counts, rows: skipped ?? 1)
            }
            return true
        } catch is RecordCursor.Unreadable { return false }
    }
}

extension Statement {
    /// Looks up a rowid; returns false if no row is there.
    fileprivate borrowing func find(_ rowID: Int64) throws -> Bool {
        reset()
        try bind(rowID, at: 1)
        return try step()
    }
}
