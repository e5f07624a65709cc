import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// No verb ignores an option or overwrites what it was not told to.
@Suite struct IgnoredOptionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `check names the releases that a hold on a range or on all releases covers`() throws {
        try bench.follow(["1.0.0"])
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult apply -q; moult publish -q public rel/test-2.0.0.json -k a.key")
        for hold in ["'>=2' --reason z", "--reason z"] {
            try bench.must("moult hold -q \(hold)")
            for verb in ["check", "status"] {
                let said = try bench.run("moult \(verb)").output
                #expect(said.contains("2.0.0 is skipped: it is on hold: z"), "\(said)")
            }
            try bench.must("moult unhold -q --all")
        }
    }

    @Test func `a threshold is refused where it has no effect`() throws {
        try bench.publishWithKeyList()
        for line in [
            "moult publish public --trust keys/keys-1.json --threshold 2 -k release.key",
            "moult publish public --check --trust keys/keys-1.json --threshold 2",
        ] {
            #expect(try bench.refusal(line, status: 64).contains("--threshold cannot be used with a key list"))
        }
        try bench.must("moult keygen -q --no-password other; mkdir none")
        let none =
            "moult trust keys none --product a.b --root root.pub --release release.pub --threshold timestamp=2 -k root.key"
        #expect(try bench.run(none).status != 0)
    }

    @Test func `a key that is given twice signs once`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult publish public -q -k a.key -k a.key; moult publish public -q --check --trust a.pub")
    }

    /// An export replaces only an earlier state of the same feed.
    @Test func `an export does not overwrite another feed`() throws {
        try bench.follow(["1.0.0"])
        try bench.must("moult apply -q; moult export 1.0.0 stick -q; moult export 1.0.0 stick -q")
        try bench.must(
            """
            sqlite3 other.db 'CREATE TABLE t(x)'; moult pack -q other.db --product org.example.other
            moult publish -q pub releases/other-1.0.0.json -k a.key
            cp -r public newer; moult publish -q newer -k a.key; mkdir text; echo mine > text/feed.json
            """)
        for (directory, why) in [
            ("pub", "it is the feed of org.example.other"), ("newer", "it has serial 2, and the exported feed has 1"),
            ("text", "it is not a feed"),
        ] {
            let before = try Tree(bench.path(directory), times: false)
            let said = try bench.refusal("moult export 1.0.0 \(directory)", status: 3)
            #expect(said.contains("\(directory)/feed.json would be overwritten: \(why)"), "\(said)")
            #expect(try Tree(bench.path(directory), times: false) == before)
        }
    }

    /// The plan for the same release must not depend on whether the release is named or comes from the feed.
    @Test func `plan and check of a feed make the same forecasts as plan of a release`() throws {
        let maker = try ReleaseMaker(in: bench.path("rel"))
        let table = "CREATE TABLE item(name TEXT PRIMARY KEY, shelf INT, own INT DEFAULT 0);"
        let more: [ReleaseMaker.Source] = [
            .shared("pantry", table, more: [.init("preserve", [["table": "item", "where": "own = 1"]])])
        ]
        _ = try maker.make("1.0.0", sequence: 1, more)
        _ = try maker.make(
            "2.0.0", sequence: 2,
            [
                .shared(
                    "pantry", table.replacing("shelf INT", with: "shelf INT CHECK(shelf < 10)"),
                    more: [.init("preserve", [["table": "item", "where": "own = 1"]])])
            ])
        try bench.must(
            """
            moult publish --allow-unsigned -q public rel/test-1.0.0.json rel/test-2.0.0.json
            moult init -q --product org.example.test --feed public; moult apply -q rel/test-1.0.0.json
            moult sql -q --write "INSERT INTO pantry.item VALUES('salt', 12, 1)"
            """)
        let named = try bench.run("moult plan --deep rel/test-2.0.0.json")
        let followed = try bench.run("moult plan --deep")
        #expect(named.status == 3 && followed.status == 3, "\(named) \(followed)")
        #expect(named.errors == followed.errors)
        #expect(try bench.run("moult apply -q").status == 3)
    }
}
