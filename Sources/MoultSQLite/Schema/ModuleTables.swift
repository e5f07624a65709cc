import MoultBasics

/// Distinguishes the tables in which modules keep the content of virtual tables from an app's own tables. SQLite lists both as
/// "shadow", because it looks only at the name: `docs_content` is an app's table if `docs` is an index of its text.
package enum ModuleTables {
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

    /// Returns whether a table listed as "shadow" is a part of a virtual table. For a module that is not in `parts`, the name
    /// is enough. `sql` returns the statement that created a table.
    static func isPart(_ table: String, _ sql: (SQLName) throws -> String?) rethrows -> Bool {
        guard let owner = owner(of: table), let virtual = try sql(SQLName(owner)), let made = try sql(SQLName(table))
        else { return true }
        return isPart(table, madeBy: made, ofTableMadeBy: virtual) ?? true
    }

    package static func isPart(_ table: String, in connection: Connection) throws -> Bool {
        try isPart(table) { name in
            let sql = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
            return try connection.scalar(sql, [.text(name.text)])?.textOrEmpty
        }
    }

    /// Returns the name of the virtual table of which a table would be a part, according to the table's name.
    static func owner(of table: String) -> String? { split(table)?.owner }

    /// Returns whether a table is a part of its owner, judging by the SQL of both; nil if the owner's module is not in `parts`.
    static func isPart(_ table: String, madeBy sql: String, ofTableMadeBy virtual: String) -> Bool? {
        guard let parts = module(ofTableMadeBy: virtual).flatMap({ parts[$0] }), let end = split(table)?.end else {
            return nil
        }
        guard let columns = parts.first(where: { SQLName($0.key) == end })?.value else { return false }
        // The text of an index with this option is in another table.
        if end == SQLName("content"), SearchIndexes.content(ofIndexMadeBy: virtual) != nil { return false }
        let names = columnNames(sql)
        return names.starts(with: columns) && names.dropFirst(columns.count).allSatisfy(isNumbered)
    }

    /// Returns whether a table is an R-tree whose module is a part of SQLite.
    static func isTree(madeBy sql: String) -> Bool { ["rtree", "rtree_i32"].contains(module(ofTableMadeBy: sql)) }

    /// Returns the module of a virtual table in lower case; nil if the SQL does not create one.
    static func module(ofTableMadeBy sql: String) -> String? {
        let tokens = sqlTokens(sql)
        guard let using = tokens.firstIndex(where: { $0.isWord("using") }), using + 1 < tokens.count else { return nil }
        return asciiLowercased(tokens[using + 1].text)
    }

    private static func split(_ table: String) -> (owner: String, end: SQLName)? {
        let bytes = Array(table.utf8)
        guard let line = bytes.lastIndex(of: UInt8(ascii: "_")) else { return nil }
        return (
            String(decoding: bytes[..<line], as: UTF8.self),
            SQLName(String(decoding: bytes[(line + 1)...], as: UTF8.self))
        )
    }

    /// Returns the first word of each column in a `CREATE TABLE` written by a module.
    private static func columnNames(_ sql: String) -> [String] {
        let tokens = sqlTokens(sql)[...]
        guard let open = tokens.firstIndex(where: { $0.isSymbol("(") }) else { return [] }
        return tokens[(open + 1)..<tokens.closingParenthesis(of: open)].splitAtCommas().compactMap { column in
            guard let first = column.first, !first.isWord("primary") else { return nil }
            return first.kind == .string ? String(first.text.dropFirst().dropLast()) : first.text
        }
    }

    /// Returns whether a column has the content of a column of the virtual table, such as `c0`, `c0body`, `l1` and `a2`, or is
    /// one of the two that a module adds.
    private static func isNumbered(_ column: String) -> Bool {
        if ["langid", "origin"].contains(column) { return true }
        let bytes = Array(column.utf8.prefix(2))
        return bytes.count == 2 && "cla".utf8.contains(bytes[0]) && (0x30...0x39).contains(bytes[1])
    }
}

/// Full-text indexes whose text is in another table.
package enum SearchIndexes {
    /// Returns the name of the table with the text of a full-text index; nil if the SQL does not create a full-text index, or the
    /// text is not in another table.
    package static func content(ofIndexMadeBy sql: String) -> String? {
        option(ofIndexMadeBy: sql).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the value of the option `content`, which is empty for an index that stores no text; nil if the SQL does not create
    /// a full-text index, or has no such option.
    package static func option(ofIndexMadeBy sql: String) -> String? {
        let tokens = sqlTokens(sql)[...]
        guard let using = tokens.firstIndex(where: { $0.isWord("using") }), using + 1 < tokens.endIndex,
            ["fts3", "fts4", "fts5"].contains(where: { tokens[using + 1].isWord($0) }),
            let open = tokens[using...].firstIndex(where: { $0.isSymbol("(") })
        else { return nil }
        for part in tokens[(open + 1)..<tokens.closingParenthesis(of: open)].splitAtCommas() {
            let option = Array(part)
            guard (2...3).contains(option.count), option[0].isWord("content"), option[1].isSymbol("=") else { continue }
            guard option.count == 3 else { return "" }
            return option[2].kind == .string ? String(option[2].text.dropFirst().dropLast()) : option[2].text
        }
        return nil
    }
}
