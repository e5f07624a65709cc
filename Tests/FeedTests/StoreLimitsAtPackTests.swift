import TestSupport
import Testing

/// What no store could open is refused where the publisher can still correct it.
@Suite struct StoreLimitsAtPackTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// A draft with so many databases, and a golden query on the first one.
    private func draft(_ count: Int, query: String = "SELECT 1", more: String = "") throws {
        try bench.must(
            """
            for i in $(seq \(count)); do sqlite3 d$i.db "CREATE TABLE t\\$i(a)"; done
            python3 - <<'END'
            import json
            json.dump({"manifest": 1, "product": "org.example.test", "version": "1.0.0",
                       "databases": {f"d{i}": {"kind": "\(more.isEmpty ? "reference" : more)" if i == 1 else "reference"}
                                     for i in range(1, \(count) + 1)},
                       "checks": [{"on": "d1", "sql": "\(query)", "expect": "1"}]}, open("draft.json", "w"))
            END
            """)
    }

    private func refusal() throws -> String {
        let refusal = try bench.refusal("moult pack draft.json -o out", status: 3)
        try bench.must("test ! -e out")
        return refusal
    }

    @Test func `pack refuses more databases than a connection can have`() throws {
        try draft(11)
        let message = """
            release 1.0.0 cannot be installed into an empty store: the release has 11 databases to attach: SQLite \
            attaches at most 10 to one connection
            """
        #expect(try refusal().hasPrefix("moult: error: \(message)\n"))
        // The main database is not attached.
        try draft(11, more: "user")
        try bench.must(
            "moult pack draft.json -o out -q; moult init -q --product org.example.test; moult apply -q out/*.json")
        try draft(10)
        try bench.must("rm -rf out store; moult pack draft.json -o out -q; moult init -q --product org.example.test")
        try bench.must("moult apply -q out/*.json")
    }

    @Test(arguments: [
        ("SELECT length(hex(zeroblob(600000000)))", "string or blob too big"),
        ("SELECT 1\(String(repeating: " * 1", count: 300))", "Expression tree is too large"),
    ])
    func `pack refuses a golden query beyond the limits of stores`(query: String, reason: String) throws {
        try draft(1, query: query)
        let refusal = try refusal()
        #expect(refusal.contains("the golden query on d1 cannot run: "), "\(refusal)")
        #expect(refusal.contains(reason), "\(refusal)")
    }
}
