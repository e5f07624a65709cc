import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Files that are made from private files are private as well.
@Suite struct PrivateSourceTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.must(
            "for n in old new; do sqlite3 $n.db \"CREATE TABLE t(x); INSERT INTO t SELECT randomblob(10000); INSERT INTO t VALUES ('$n')\"; done"
        )
    }

    private func mode(_ file: String) throws -> String { try bench.must("stat -c %a \(file)").trimmed }

    @Test(arguments: [
        ("644", "644", "644"), ("600", "644", "600"), ("644", "600", "600"), ("640", "640", "600"),
        ("444", "444", "644"),
    ])
    func `a patch has the mode of its sources`(old: String, new: String, patch: String) throws {
        try bench.must("chmod \(old) old.db; chmod \(new) new.db; umask 0; moult delta -q old.db new.db -o x.patch")
        #expect(try mode("x.patch") == patch)
        #expect(try Files.list(bench.scratch.path).sorted() == ["new.db", "old.db", "x.patch"])
    }

    @Test(arguments: [("600", "600"), ("640", "600"), ("644", "644")])
    func `a bundle has the mode of its databases until it is published`(database: String, bundle: String) throws {
        try bench.must(
            "chmod \(database) old.db; umask 0; moult pack -q old.db --product org.example.x --version 1.0.0 -o public")
        #expect(try mode("public/x-1.0.0.tar.zst") == bundle)
        #expect(try mode("public/x-1.0.0.json") == "644")
        try bench.must("moult publish --allow-unsigned -q public public/x-1.0.0.json")
        #expect(try mode("public/x-1.0.0.tar.zst") == "644")
    }

    @Test func `a page with rows of a private database is private`() throws {
        try bench.must("chmod 640 old.db; umask 0; moult diff -q old.db new.db --html page.html || test $? = 2")
        #expect(try mode("page.html") == "600")
    }

    /// A program truncates a file as soon as the command has begun with it.
    @Test(arguments: ["old.db", "new.db"], [".x.patch.moult-new", ".x.patch.moult-new.old", ".x.patch.moult-new.new"])
    func `a file that is truncated while a patch is made does not end the command by a signal`(
        file: String, sign: String
    ) throws {
        for name in ["old", "new"] {
            try bench.must(
                "sqlite3 \(name).db \"WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) INSERT INTO t SELECT randomblob(1000000) FROM n\""
            )
        }
        let ended = try bench.run(
            """
            ( until test -e \(sign); do :; done; truncate -s 4096 \(file) ) & watcher=$!
            moult delta -q old.db new.db -o x.patch; status=$?; kill $watcher 2>/dev/null; exit $status
            """)
        #expect(
            ended.status == 0
                || ended.status == 75 && ended.errors.contains("\(file) was changed while it was read"),
            "\(ended.status) \(ended.errors)")
        #expect(try Files.list(bench.scratch.path).filter { $0.hasPrefix(".x.patch") } == [])
    }
}
