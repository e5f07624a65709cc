import MoultBasics

/// Tells the tables in which the modules of virtual tables keep their parts from an app's own tables. SQLite lists both as
/// "shadow", because it goes by the name alone: `docs_content` is an app's table if `docs` is an index of its text.
enum ModuleTables {
    /// The first columns of each part, by module and by the end of the part's name.
    private static let parts: [String: [String: [String]]] = {
        let tree = ["node": ["nodeno", "data"], "parent": ["nodeno", "parentnode"], "rowid": ["rowid", "nodeno"]]
        let fts4 = [
            "content": ["docid"], "segments": ["blockid", "block"], "docsize": ["docid", "size"],
            "stat": ["id", "value"],
            "segdir": ["level", "idx", "start_block", "leaves_end_block", "end_block", "root"],
        ]
        let fts5 = [
            "content": ["id"], "data": ["id", "block"], "idx": ["segid", "term", "pgno"], "docsize": ["id", "sz"],
            "config": ["k", "v"],
        ]
        return ["rtree": tree, "rtree_i32": tree, "geopoly": tree, "fts3": fts4, "fts4": fts4, "fts5": fts5]
    }()

    /// Whether a table listed as "shadow" is a part of a virtual table. A module that is not known here is trusted with its names.
    static func isPart(_ table: String, in connection: Connection) throws -> Bool {
        let bytes = Array(table.utf8)
        guard let line = bytes.lastIndex(of: UInt8(ascii: "_")) else { return true }
        let (owner, end) = (
            String(decoding: bytes[..<line], as: UTF8.self), String(decoding: bytes[(line + 1)...], as: UTF8.self)
        )
        let sql = try connection.scalar(
            "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND rootpage = 0 AND name = ?1 COLLATE NOCASE",
            [.text(owner)]
        )?.textOrEmpty
        guard let sql, let module = module(ofTableMadeBy: sql) else { return true }
        guard let parts = parts[module] else { return true }
        guard let columns = parts.first(where: { SQLName($0.key) == SQLName(end) })?.value else { return false }
        // The text of an index with this option is in another table.
        if SQLName(end) == SQLName("content"), SearchIndexes.content(ofIndexMadeBy: sql) != nil { return false }
        let names = try connection.query("PRAGMA main.table_xinfo(\(quoteIdentifier(table)))").map(\.[1].textOrEmpty)
        return names.starts(with: columns) && names.dropFirst(columns.count).allSatisfy(isNumbered)
    }

    /// Columns of the virtual table itself, such as `c0`, `c0body`, `l1` and `a2`, and two that a module adds.
    private static func isNumbered(_ column: String) -> Bool {
        if ["langid", "origin"].contains(column) { return true }
        let bytes = Array(column.utf8.prefix(2))
        return bytes.count == 2 && "cla".utf8.contains(bytes[0]) && (0x30...0x39).contains(bytes[1])
    }

    private static func module(ofTableMadeBy sql: String) -> String? {
        let tokens = sqlTokens(sql)
        guard let using = tokens.firstIndex(where: { $0.isWord("using") }), using + 1 < tokens.count else { return nil }
        return tokens[using + 1].text
    }
}
