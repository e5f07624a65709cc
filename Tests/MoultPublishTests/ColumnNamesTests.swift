import Testing

@testable import MoultPublish

@Suite struct ColumnNamesTests {
    @Test(arguments: [
        (["a", "b"], ["a", "b"]),
        (["a", "A", "b", "", "", "x\"y", "a"], ["a_1", "A_2", "b", "?_4", "?_5", "x\"y", "a_7"]),
        (["a", "a", "A_1", "a_2"], ["a_01", "a_02", "A_1", "a_2"]),
        (["a", "a", "a_1", "a_01"], ["a_001", "a_002", "a_1", "a_01"]),
        (["a", "a", "a_1", "a_1"], ["a_1", "a_2", "a_1_3", "a_1_4"]),
        // SQLite does not treat letters outside ASCII as equal, so these names are distinct.
        (["é", "É", "e\u{301}"], ["é", "É", "e\u{301}"]),
    ])
    func `column names of a header become distinct`(_ header: [String], _ names: [String]) {
        let columns = ColumnNames(header)
        #expect(columns.names.map { Array($0.utf8) } == names.map { Array($0.utf8) })
    }

    @Test func `column definitions have the line breaks of the SQLite shell`() {
        #expect(
            ColumnNames(["a", "b", "c", "d", "e\"f"]).definitions
                == "(\n\"a\" TEXT, \"b\" TEXT, \"c\" TEXT, \"d\" TEXT,\n \"e\"\"f\" TEXT)")
    }
}
