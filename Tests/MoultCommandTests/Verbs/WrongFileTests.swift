import TestSupport
import Testing

/// A file or address given by mistake: the message says which kind it is and which command to use.
@Suite struct WrongFileTests {
    private let world: World
    init() throws {
        world = try World()
        try world.install(world.first)
        try world.must("moult keygen -q --no-password key")
        try world.must("moult init -q signed --product org.example.test --key key.pub")
        try world.must("sqlite3 food.sqlite 'CREATE TABLE t(a)'")
        try world.must(
            #"echo '{"manifest":1,"product":"org.example.test","version":"3.0.0","databases":{"food":{"kind":"reference","source":"food.sqlite"}}}' > d.json"#
        )
    }

    private func error(_ line: String) throws -> String { try world.run(line).err }

    @Test(arguments: ["store", "signed"]) func `a database is not the manifest of a release`(_ store: String) throws {
        try world.must("sqlite3 my.sqlite 'CREATE TABLE t(a)'")
        #expect(
            try error("moult apply --store \(store) my.sqlite").hasSuffix(
                "/my.sqlite is a database, not the manifest of a release\n"
                    + "  Make a release of it: moult pack \(world.scratch.path("my.sqlite"))\n"))
    }

    @Test(arguments: ["store", "signed"]) func `a bundle is not the manifest of a release`(_ store: String) throws {
        let bundle = world.scratch.path("rel/test-1.0.0")
        #expect(
            try error("moult apply --store \(store) rel/test-1.0.0.tar.zst")
                == """
                moult: error: \(bundle).tar.zst is an archive (data compressed with zstd), not the manifest of a release
                  Install it by its manifest: moult apply \(bundle).json --store \(store)

                """)
        try world.must("mkdir alone; cp rel/test-1.0.0.tar.zst alone")
        #expect(
            try error("moult apply --store \(store) alone/test-1.0.0.tar.zst").hasSuffix(
                "\n  Give the manifest of the release: moult pack writes it next to the bundle.\n"))
    }

    @Test(arguments: ["store", "signed"]) func `a draft is not the manifest of a release`(_ store: String) throws {
        #expect(
            try error("moult apply --store \(store) d.json")
                == """
                moult: error: d.json is a draft, not the manifest of a release
                  Make a release of it: moult pack d.json

                """)
    }

    @Test func `a missing feed on the command line does not blame the settings`() throws {
        #expect(
            try error("moult check --feed /none")
                == "moult: error: no feed at /none: it does not exist\n  Check the address of the feed.\n")
    }

    @Test func `a reset lists the databases that it can reset`() throws {
        #expect(
            try error("moult reset nope")
                == "moult: error: release 1.0.0 has no database \"nope\": those that can be reset are user\n")
    }

    @Test(arguments: [("--fore 3", "--force-after"), ("--stor x", "--store"), ("--create-", "--create")])
    func `a prefix of an option suggests the full option`(_ words: String, whole: String) throws {
        #expect(try error("moult apply \(words)").contains("did you mean \"\(whole)\"?\n"))
    }

    @Test(arguments: ["--out", "--output", "-o"]) func `plan saves to a file with either option name`(_ option: String)
        throws
    {
        try world.must(
            "moult plan -q \(option) saved.plan \(world.second) || [ $? = 2 ] && [ -s saved.plan ]")
    }

    /// A value of any size takes only a few lines in a message and in the history.
    @Test func `a huge number, name or query does not fill the screen`() throws {
        try world.must("printf '{\"version\":%0100000d}' 1 > number.json; sed 's/0001}/x}/' -i number.json")
        try world.must("printf '{\"manifest\":1,\"product\":\"%0100000d\"}' 1 > product.json")
        try world.must(#"printf '{"manifest":1,"product":"org.example.test","version":"%0100000d"}' 1 > version.json"#)
        for file in ["number.json", "product.json", "version.json"] {
            let said = try error("moult apply \(file)")
            #expect(said.utf8.count < 600, "\(file): \(said.utf8.count) bytes")
        }
    }
}
