import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Releases that no store could install are neither packed nor published.
@Suite struct PackTrialTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private static let food =
        "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO food(name) VALUES('egg'), ('milk');"

    /// Writes a draft of release `number`.0.0 with the read-only database `food`.
    private func draft(_ number: Int, food: String = food, more: String = "", databases: String = "") throws {
        try scratch.write("food-\(number).sql", Array(food.utf8))
        try scratch.write(
            "\(number).json",
            Array(
                """
                { "manifest": 1, "product": "org.example.food", "version": "\(number).0.0", "sequence": \(number), \(more)
                  "databases": { "food": { "kind": "reference", "build": { "script": "food-\(number).sql" } }, \(databases) } }
                """.utf8))
    }

    private func isRefused(_ number: Int, _ why: String..., sourceLocation: SourceLocation = #_sourceLocation) throws {
        let before = try Files.list(scratch.path("rel"))
        let ended = try scratch.moult("moult pack \(number).json -o rel")
        #expect(ended.status == 3, "\(ended.err)", sourceLocation: sourceLocation)
        for why in why { #expect(ended.err.contains(why), "\(ended.err)", sourceLocation: sourceLocation) }
        #expect(ended.err.contains("Nothing was written."), "\(ended.err)", sourceLocation: sourceLocation)
        // The error must not contain the path of the trial store, which has been removed.
        #expect(!ended.err.contains(scratch.path("rel/.")), "\(ended.err)", sourceLocation: sourceLocation)
        #expect(try Files.list(scratch.path("rel")) == before, sourceLocation: sourceLocation)
    }

    // MARK: in an empty store

    @Test func `pack lists the trials of a sound release`() throws {
        try draft(1, more: #""checks": [{ "on": "food", "sql": "SELECT count(*) FROM food", "expect": "2" }],"#)
        let first = try scratch.moult("moult pack 1.json -o rel")
        #expect(first.status == 0 && first.out.contains("trial: installed into an empty store\n"), "\(first)")
        try draft(2)
        let second = try scratch.moult("moult pack 2.json -o rel")
        #expect(second.out.contains("trial: installed into an empty store, over 1.0.0\n"), "\(second)")
        // The trial ignores external steps and the app version that the release requires.
        try draft(
            3,
            more:
                #""requires": { "app": ">=3.2 <5", "from": ">=2" }, "steps": [{ "step": "acme.notify", "after": "copy" }],"#
        )
        let third = try scratch.moult("moult pack 3.json -o rel")
        #expect(
            third.out.contains(
                "installed into an empty store, over 2.0.0; not tried over 1.0.0: it requires an installed version >=2"),
            "\(third)")
        #expect(try Files.list(scratch.path("rel")).filter { $0.hasPrefix(".") } == [])
    }

    @Test func `pack names the steps that it cannot run, and checks their parameters with a program`() throws {
        func steps(_ with: String) -> String { #""steps": [{ "step": "acme.notify", "after": "copy"\#(with) }],"# }
        try scratch.write(
            "notify",
            Array(
                """
                #!/bin/sh
                read -r message
                echo '{"reply":"result","protocol":1,"name":"acme.notify","version":"1.0.0","summary":"notifies","planIsPure":true,"parameters":{"type":"object","required":["directory"],"properties":{"directory":{"type":"string"}},"additionalProperties":false}}'

                """.utf8))
        try Shell.must(["chmod", "755", scratch.path("notify")])
        try draft(1, more: steps(""))
        let unknown = try scratch.moult("moult pack 1.json -o rel")
        #expect(unknown.status == 0, "\(unknown)")
        #expect(unknown.out.contains("! trial: the step acme.notify was not run: only stores have it"), "\(unknown)")
        try draft(2, more: steps(""))
        let wrong = try scratch.moult("moult pack 2.json -o rel --step acme.notify=notify")
        #expect(wrong.status == 3, "\(wrong)")
        #expect(wrong.err.contains("the step acme.notify does not accept these parameters: with.directory"), "\(wrong)")
        try draft(3, more: steps(#", "with": { "directory": "/var/spool/hooks" }"#))
        let right = try scratch.moult("moult pack 3.json -o rel --step acme.notify=notify --json")
        #expect(right.status == 0, "\(right)")
        let notRun = try JSON(parsing: right.out, source: "pack")["stepsNotRun"]
        #expect(notRun == [["step": "acme.notify", "why": "its program accepts the parameters"]])
    }

    @Test func `a version that differs only in build metadata is not newer, and the advice is a higher one`() throws {
        try draft(1)
        try scratch.must("moult pack -q 1.json -o rel && moult publish --allow-unsigned -q public rel/food-1.0.0.json")
        try scratch.must("sed 's/1.0.0/1.0.0+hotfix.1/; s/\"sequence\": 1,/\"sequence\": 2,/' 1.json > 2.json")
        let advice =
            "Build metadata, the part after \"+\", does not make a version newer. Choose a higher version, such as 1.0.1"
        let packed = try scratch.moult("moult pack 2.json -o rel")
        #expect(packed.status == 3 && packed.err.contains(advice), "\(packed)")
        #expect(!packed.err.contains(#""requires""#), "\(packed)")
        try scratch.must("moult pack -q 2.json -o other")
        let published = try scratch.moult("moult publish --allow-unsigned public other/food-1.0.0*.json")
        #expect(published.status == 3 && published.err.contains(advice), "\(published)")
    }

    @Test func `pack tries a release over the three newest releases and the specified ones`() throws {
        for number in 1...5 {
            try draft(number)
            let ended = try scratch.moult("moult pack \(number).json -o rel")
            let tried = (1..<max(number, 1)).reversed().prefix(3).map { ", over \($0).0.0" }.joined()
            #expect(ended.out.contains("trial: installed into an empty store\(tried)\n"), "\(ended)")
        }
        try draft(6)
        let named = try scratch.moult("moult pack 6.json -o rel --previous rel/food-1.0.0.json --json")
        let trials = try JSON(parsing: named.out, source: "pack")["trials"]?.array ?? []
        #expect(trials.map { $0["previous"]?.string } == [nil, "1.0.0", "5.0.0", "4.0.0", "3.0.0"], "\(named)")
        #expect(trials.allSatisfy { $0["installed"]?.bool == true })
        let newer = try scratch.moult("moult pack 5.json -o other --previous rel/food-6.0.0.json")
        #expect(newer.status == 1 && newer.err.contains("it is not an older release of org.example.food"), "\(newer)")
    }

    // MARK: over the previous release

    private func note(_ number: Int, _ sql: String, migration: String? = nil) throws -> String {
        try scratch.write("note-\(number).sql", Array(sql.utf8))
        if let migration { try scratch.write("\(number)-note.sql", Array(migration.utf8)) }
        let migrations = migration == nil ? "" : #", "migrations": ["\#(number)-note.sql"]"#
        return #""note": { "kind": "user", "build": { "script": "note-\#(number).sql" }\#(migrations) }"#
    }

    @Test(arguments: [
        ("ALTER TABEL note ADD COLUMN day; PRAGMA user_version = 2;", "syntax error"),
        ("ALTER TABLE note ADD COLUMN day;", "user_version"),
        ("ALTER TABLE note ADD COLUMN month; PRAGMA user_version = 2;", "column \"day\" is missing"),
    ])
    func `a migration that does not lead to the new database is refused`(sql: String, why: String) throws {
        try draft(1, databases: note(1, "CREATE TABLE note(text); PRAGMA user_version = 1;"))
        #expect(try scratch.moult("moult pack -q 1.json -o rel").status == 0)
        try draft(
            2,
            databases: note(2, "CREATE TABLE note(text, day); PRAGMA user_version = 2;", migration: sql))
        try isRefused(2, "over 1.0.0", why)
        // A release that is given with an option need not be in the output directory.
        try scratch.mustMoult("mv rel old")
        let ended = try scratch.moult("moult pack 2.json -o rel --previous old/food-1.0.0.json")
        #expect(ended.status == 3 && ended.err.contains("over 1.0.0"), "\(ended.err)")
    }

    @Test func `pack refuses a migration that exceeds its budget, or has a budget for a missing table`() throws {
        try draft(1)
        #expect(try scratch.moult("moult pack -q 1.json -o rel").status == 0)
        try draft(2, more: #""budget": { "food.foods": { "shrink": "20%" } },"#)
        try isRefused(2, "budget.food.foods", "food")
        // A budget that a release exceeds.
        try draft(2, food: "CREATE TABLE food(id, name);", more: #""budget": { "food.food": { "shrink": "20%" } },"#)
        try isRefused(2, "over 1.0.0", "table food of food would shrink")
    }

    // MARK: publishing

    @Test func `publish refuses a release that cannot be installed over the previous one`() throws {
        try draft(1, databases: note(1, "CREATE TABLE note(text); PRAGMA user_version = 1;"))
        try draft(
            2,
            databases: note(
                2, "CREATE TABLE note(text, day); PRAGMA user_version = 2;",
                migration: "ALTER TABLE note ADD COLUMN month; PRAGMA user_version = 2;"))
        // Packed separately, each release is accepted.
        let packed = try scratch.moult("moult pack -q 1.json -o one && moult pack -q 2.json -o two")
        #expect(packed.status == 0, "\(packed)")
        #expect(try scratch.moult("moult publish --allow-unsigned -q public one/food-1.0.0.json").status == 0)
        let before = try Tree(scratch.path("public"), times: false)
        let ended = try scratch.moult("moult publish --allow-unsigned public two/food-2.0.0.json")
        #expect(ended.status == 3 && ended.err.contains("cannot be installed over 1.0.0"), "\(ended.err)")
        #expect(try Tree(scratch.path("public"), times: false) == before)
    }

    @Test func `publish refuses a release that cannot be installed into an empty store`() throws {
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        let manifest = try maker.make(
            "1.0.0", sequence: 1, [.reference("food", Self.food)],
            top: [.init("checks", [["on": "food", "sql": "selekt 1", "expect": "1"]])])
        let ended = try scratch.moult("moult publish --allow-unsigned public \(manifest)")
        #expect(ended.status == 3 && ended.err.contains("cannot be installed into an empty store"), "\(ended.err)")
        #expect(try Files.list(scratch.path("public")) == [])
    }

    // MARK: changes for users

    @Test func `the changes from the previous release are shown`() throws {
        let shop =
            "CREATE TABLE shop(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);"
        try scratch.write("shop.sql", Array(shop.utf8))
        try scratch.write(
            "mine-1.sql", Array("CREATE TABLE mine(id INTEGER PRIMARY KEY); PRAGMA user_version = 1;".utf8))
        try scratch.write(
            "mine-2.sql", Array("CREATE TABLE mine(id INTEGER PRIMARY KEY, text TEXT); PRAGMA user_version = 2;".utf8))
        try scratch.write("2-text.sql", Array("ALTER TABLE mine ADD COLUMN text TEXT; PRAGMA user_version = 2;".utf8))
        let shared =
            #""shop": { "kind": "shared", "build": { "script": "shop.sql" }, "preserve": [{ "table": "shop" }] }"#
        try draft(
            1, databases: #"\#(shared), "mine": { "kind": "user", "build": { "script": "mine-1.sql" } }"#)
        try draft(
            2, food: Self.food + "INSERT INTO food(name) VALUES('rye'); CREATE INDEX by_name ON food(name);",
            databases:
                #"\#(shared), "mine": { "kind": "user", "build": { "script": "mine-2.sql" }, "migrations": ["2-text.sql"] }"#
        )
        #expect(try !scratch.moult("moult pack 1.json -o rel").out.contains("changes from"))
        let packed = try scratch.moult(
            "moult pack 2.json -o rel --json > packed.json; rm rel/food-2*; moult pack 2.json -o rel")
        #expect(packed.status == 0, "\(packed.err)")
        for line in [
            "changes from 1.0.0", "food: index by_name", "food: 1 row added", "mine: stores run 2-text.sql",
            "shop: rows that apps add to note are not preserved", "bundle: ",
        ] {
            #expect(packed.out.contains(line), "\(line) in \(packed.out)")
        }
        let json = try JSON(parsing: scratch.must("cat packed.json"), source: "packed.json")
        #expect(json["changes"]?["from"]?.string == "1.0.0")
        #expect(json["changes"]?["migrations"]?.array?.first?["member"]?.string == "2-text.sql")
        #expect(json["changes"]?["unpreserved"]?.array?.compactMap { $0["table"]?.string } == ["note"])
    }
}

/// The input of `moult pack`, and the names of its output.
@Suite struct PackInputTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func draft(_ version: String = "1.0.0", source: String = "food.db", more: String = "") throws -> String {
        try scratch.write(
            "draft.json",
            Array(
                """
                { "manifest": 1, "product": "org.example.food", "version": "\(version)", "sequence": 1, \(more)
                  "databases": { "food": { "kind": "reference", "source": "\(source)" } } }
                """.utf8))
    }

    @Test func `a version with build metadata is packed, installed and published`() throws {
        try Shell.must(["sqlite3", scratch.path("food.db"), "CREATE TABLE food(name)"])
        _ = try draft("1.0.0+build.5")
        let ended = try scratch.moult(
            """
            moult pack -q draft.json -o rel && moult init -q store --product org.example.food && ls rel &&
            moult apply -q --store store rel/food-1.0.0_build.5.json && moult status --store store | head -1 &&
            moult publish --allow-unsigned -q public rel/food-1.0.0_build.5.json
            """)
        #expect(ended.status == 0, "\(ended)")
        #expect(ended.out.hasPrefix("food-1.0.0_build.5.json\nfood-1.0.0_build.5.tar.zst\n"), "\(ended)")
        #expect(ended.out.contains("1.0.0+build.5"), "\(ended)")
    }
}
