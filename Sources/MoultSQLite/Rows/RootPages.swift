import MoultBasics

/// The root page of each ordinary table. Looking up a name reads all of `sqlite_schema`, so the pages of all tables are read at
/// once.
package struct RootPages {
    private let pages: [SQLName: Int64]

    package init(of connection: Connection) throws {
        var pages: [SQLName: Int64] = [:]
        let sql = "SELECT name, rootpage FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0"
        for row in try connection.query(sql) {
            if case .text(let name) = row[0], case .integer(let page) = row[1] { pages[SQLName(name)] = page }
        }
        self.pages = pages
    }

    /// The root page of a table, by its name in the schema; nil for a virtual table.
    package subscript(table: String) -> Int64? { pages[SQLName(table)] }
}
