import TestSupport
import Testing

/// SQLite opens files whose paths have up to 504 bytes. moult refuses longer paths before it creates a store.
@Suite struct LongPathTests {
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try scratch.must(
            """
            sqlite3 food.db 'CREATE TABLE food(a)'
            moult pack food.db --product org.example.test -o out -q
            """)
    }

    /// Returns a path of this many bytes, whose names are short enough for the file system.
    private func path(_ bytes: Int) -> String {
        var path = scratch.path
        while path.utf8.count < bytes {
            path += "/" + String(repeating: "d", count: max(1, min(100, bytes - path.utf8.count - 1)))
        }
        return path
    }

    @Test func `a store whose path leaves no room for databases is refused at init`() throws {
        for bytes in [401, 450, 1000, 4000] {
            let store = path(bytes)
            for line in [
                "init \(store) --product org.example.test", "apply --create out/test-1.0.0.json --store \(store)",
            ] {
                let x: Shell.Ended = try scratch.run("moult \(line)")
                #expect(x.status == 3)
                #expect(
                    x.errors == """
                        moult: error: cannot create a store at \(store): the path has \(bytes) bytes, but the limit for a store is 400
                          Choose a directory with a shorter path: SQLite cannot open a file whose path has more than 504 bytes.

                        """, "\(x)")
            }
        }
        #expect(try scratch.must("ls") == "food.db\nout\n")
    }

    @Test func `a store with the longest path can be updated, verified and rolled back`() throws {
        let store = path(400)
        try scratch.must(
            """
            moult init \(store) --product org.example.test -q
            export MOULT_STORE=\(store)
            moult apply -q out/test-1.0.0.json
            sqlite3 food.db 'CREATE TABLE more(a)'
            moult pack food.db --product org.example.test --version 2.0.0 -o out -q
            moult apply -q out/test-2.0.0.json
            moult verify --deep -q
            moult rollback -q
            moult verify -q
            """)
    }

    @Test func `a release with names that are too long for the store is refused, and the error names the file`() throws
    {
        let (store, name) = (path(400), String(repeating: "n", count: 60))
        try scratch.must(
            """
            cp food.db \(name).db
            moult pack \(name).db --product org.example.test -o long -q
            moult init \(store) --product org.example.test -q
            """)
        for verb in ["plan", "apply"] {
            let x: Shell.Ended = try scratch.run("moult \(verb) long/test-1.0.0.json --store \(store)")
            #expect(x.status == 3)
            #expect(
                x.errors.hasPrefix(
                    "moult: error: release 1.0.0 cannot be installed in \(store): the path \(store)/.moult/"))
            #expect(x.errors.contains(" bytes, but SQLite cannot open a file whose path has more than 504\n"), "\(x)")
        }
        try scratch.must("moult init ok --product org.example.test -q; moult apply long/test-1.0.0.json --store ok -q")
        // A link with a short name does not help, because SQLite resolves it.
        try scratch.must("ln -s \(store) short")
        #expect(try (scratch.run("moult apply long/test-1.0.0.json --store short") as Shell.Ended).status == 3)
    }
}
