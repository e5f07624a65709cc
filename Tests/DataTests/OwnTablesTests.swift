import MoultFiles
import TestSupport
import Testing

/// A database that was copied from a store has moult's own tables. In a release, they do not count as its content.
@Suite struct OwnTablesTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        let sql = "CREATE TABLE price(item PRIMARY KEY, cents); INSERT INTO price VALUES('bread', 320)"
        try scratch.must(
            """
            sqlite3 prices.db "\(sql)"; cp prices.db new.db
            moult pack -q prices.db --kind prices=shared --product org.example.own -o own --write-draft own.json || [ $? = 3 ]
            sed -i 's/"kind": "shared",/& "preserve": [],/' own.json; moult pack -q own.json -o own
            moult apply -q --create -s own-store own/own-1.0.0.json; cp own-store/prices.db prices.db
            """)
        #expect(try scratch.must("sqlite3 prices.db .tables").contains("moult_release"))
    }

    @Test func `a database with moult's own tables can replace a file`() throws {
        try scratch.must(
            "cp new.db prod.db; sqlite3 prices.db 'CREATE TABLE moult_rejected(release, \"table\", reason, row)'")
        try scratch.must("moult replace -q prod.db prices.db; moult verify prod.db")
        #expect(try scratch.must("sqlite3 prod.db .dump") == scratch.must("sqlite3 prices.db .dump"))
    }

    @Test(arguments: ["shared", "user", "cache"]) func `a release made from a live database is sound`(kind: String)
        throws
    {
        let preserve = kind == "shared" ? #""preserve": [],"# : ""
        try scratch.write(
            "draft.json",
            #"{"manifest": 1, "product": "org.example.test", "version": "1.0.0", "databases": {"prices": {"#
                + #""kind": "\#(kind)", \#(preserve) "source": "prices.db"}}}"#)
        try scratch.must("moult pack -q draft.json")
        try scratch.must("moult apply -q --create -s s releases/test-1.0.0.json")
        try scratch.must("sqlite3 s/prices.db \"INSERT INTO price VALUES('mine', 1)\"; moult verify -s s")
        #expect(try !scratch.must("moult status -s s").contains("needs repair"))
        // Applying the same release again does not empty a cache.
        try scratch.must("moult apply -q -s s releases/test-1.0.0.json")
        #expect(try scratch.must("sqlite3 s/prices.db 'SELECT count(*) FROM price'") == "2\n")
    }

    @Test func `pack does not report moult's own tables as not preserved`() throws {
        try scratch.write(
            "draft.json",
            #"{"manifest": 1, "product": "org.example.test", "version": "1.0.0", "databases": {"new": {"#
                + #""kind": "shared", "preserve": [], "source": "new.db"}}}"#)
        try scratch.must("moult pack -q draft.json")
        try scratch.must("cp prices.db new.db; sqlite3 new.db \"INSERT INTO price VALUES('eggs', 290)\"")
        let text: String = try scratch.must("moult pack new.db")
        #expect(!text.contains("moult_release") && text.contains("add to price are not preserved"), "\(text)")
    }
}
