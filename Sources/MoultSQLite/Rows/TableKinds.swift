import MoultBasics

/// The tables of a database by name, except SQLite's own and the ignored ones.
struct TableKinds {
    struct Table {
        let name: String
        /// `table`, `virtual`, `shadow` (a part of a virtual table) or `view`.
        let type: String
    }

    let all: [SQLName: Table]
    /// Full-text indexes whose text is in another table.
    private let derived: Set<SQLName>

    init(of connection: Connection, ignoring: Set<String>) throws {
        let ignored = Set(ignoring.map { SQLName($0) })
        var all: [SQLName: Table] = [:]
        for row in try connection.query("PRAGMA main.table_list") {
            let name = row[1].textOrEmpty
            let key = SQLName(name)
            guard row[0] == .text("main"), !key.isInternal, !ignored.contains(key) else { continue }
            var type = row[2].textOrEmpty
            if type == "shadow", try !ModuleTables.isPart(name, in: connection) { type = "table" }
            all[key] = Table(name: name, type: type)
        }
        self.all = all
        derived = Set(try SearchIndexes.all(in: connection).map { SQLName($0.name) })
    }

    var ordinary: [SQLName] { names("table") }

    /// Virtual tables with their own content.
    var virtual: [SQLName] { names("virtual").filter { !derived.contains($0) } }

    /// Returns the tables in which a virtual table keeps its content: only the table of its rows, if that is separate from its
    /// index.
    func shadows(of virtual: SQLName) -> [SQLName] {
        let content = SQLName("\(virtual)_content")
        return all[content]?.type == "shadow" ? [content] : names("shadow").filter { $0.hasPrefix("\(virtual)_") }
    }

    private func names(_ type: String) -> [SQLName] { all.filter { $0.value.type == type }.keys.sorted() }
}

extension RowSearch {
    /// Returns the positions of columns with the same name.
    static func pairs(_ one: TableLayout, _ two: TableLayout) -> [(row: Int, other: Int)] {
        one.columns.indices.compactMap { place in two.place(of: one.columns[place].name).map { (place, $0) } }
    }

    /// Returns the number of rows in a virtual table's own tables that have no equal row in the other database.
    static func countUnmatched(
        virtual table: SQLName, _ kinds: TableKinds, _ connection: Connection, in other: Connection
    ) throws -> Int {
        var count = 0
        for shadow in kinds.shadows(of: table) {
            guard let layout = try TableLayout.of(shadow, in: connection, type: "shadow") else { continue }
            guard let otherLayout = try TableLayout.of(shadow, in: other, type: "shadow") else {
                count += Int(try connection.int("\(layout.rows.countSQL)"))
                continue
            }
            let search = try RowSearch(
                Side(layout, connection), in: Side(otherLayout, other), pairs: pairs(layout, otherLayout))
            count += try search.countUnmatched()
        }
        return count
    }
}
