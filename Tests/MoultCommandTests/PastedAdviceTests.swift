import MoultBasics
import TestSupport
import Testing

/// The command in the advice of an error can be pasted and works, and repeats the names from the command line.
@Suite struct PastedAdviceTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    /// Runs a command that must fail, and returns the command in the advice of the error, beginning with its verb.
    private func advised(_ line: String, after words: String) throws -> String {
        let ended = try world.run("\(line)")
        #expect(ended.status != 0)
        let start = try #require(ended.err.firstRange(of: "\(words): moult "), "\(ended)").upperBound
        let rest = ended.err[start...].prefix { $0 != "\n" }
        return String(rest[..<(rest.firstRange(of: ". ")?.lowerBound ?? rest.endIndex)])
    }

    @Test func `advice that adds an option keeps the specified release and store`() throws {
        try world.install(world.first, world.second)
        let said = try advised("moult apply -s store rel/test-1.0.0.json --wait 1", after: "To install it anyway")
        #expect(said == "apply rel/test-1.0.0.json --wait 1 --allow-downgrade --store store")
        try world.must("moult \(said) && moult status -s store | grep -q 'test 1.0.0'")
    }

    @Test func `the command in the advice of plan applies the same release`() throws {
        try world.install(world.first, world.second)
        let said = try advised("moult plan rel/test-1.0.0.json -v -s store", after: "To install it anyway")
        #expect(said.hasPrefix("apply rel/test-1.0.0.json --allow-downgrade --store store"))
    }

    @Test func `outside a store, the advice is a command that creates a store with the release`() throws {
        let said = try advised(
            "mkdir elsewhere; cd elsewhere; moult apply ../rel/test-1.0.0.json", after: "with a release")
        #expect(said == "apply --create ../rel/test-1.0.0.json")
        try world.must("cd elsewhere; moult \(said)")
        let other = try advised("moult apply rel/test-1.0.0.json --store 'no store'", after: "with the first release")
        #expect(other == "apply --create rel/test-1.0.0.json --store 'no store'")
        try world.must("moult \(other)")
    }

    @Test func `the suggested command takes over a database whose kind changes`() throws {
        try world.must(
            """
            moult init -q --product org.example.test; sqlite3 notes.db 'CREATE TABLE note(text)'
            moult pack -q notes.db --product org.example.test --kind notes=user --version 3.0.0 -o kinds
            moult apply -q kinds/test-3.0.0.json; mv store 'our store'
            sqlite3 'our store/notes.db' "INSERT INTO note VALUES('mine')"
            moult pack -q notes.db --product org.example.test --kind notes=shared --version 4.0.0 -o other --write-draft draft.json || [ $? = 3 ]
            sed -i 's/"sequence": 1/"sequence": 9/; s/"kind": "shared",/& "preserve": [],/' draft.json; moult pack -q draft.json -o shared
            moult publish --allow-unsigned -q public shared/test-4.0.0.json
            """)
        // `check` does not recommend a release that `apply` would refuse.
        let check = try world.run("moult check --feed public/feed.json -s 'our store'")
        #expect(check.status == 2 && check.out.contains("`moult apply` would refuse this release: "), "\(check)")
        #expect(!check.out.contains("install it with"))
        let after = "keep the file in quarantine"
        let said = try advised("moult apply --feed public/feed.json -s 'our store'", after: after)
        #expect(said == "apply --feed public/feed.json --take-over notes --store 'our store'")
        #expect(check.out.contains("\(after): moult \(said)\n"), "\(check.out)")
        #expect(
            try advised("moult plan shared/test-4.0.0.json -s 'our store'", after: after)
                == "apply shared/test-4.0.0.json --take-over notes --store 'our store'")
        let allowed = try world.run("moult check --take-over notes --feed public/feed.json -s 'our store'")
        #expect(
            allowed.out.contains(
                "install it with: moult apply --feed public/feed.json --take-over notes --store 'our store'\n"),
            "\(allowed)")
        try world.must("moult \(said)")
        // The set counts the rows of the database that was taken over.
        let list = try world.must("moult quarantine -s 'our store'")
        #expect(list.split(separator: "\n").last?.split(separator: " ").dropLast().last == "1", "\(list)")
    }

    @Test func `for a missing public key, the advice does not suggest creating one`() throws {
        let ended = try world.run("moult init --product org.example.test --key nope.pub")
        #expect(
            ended.err
                == "moult: error: no public key at nope.pub: no such file\n  Specify the publisher's public key: the path of its .pub file, or the key line in that file.\n"
        )
    }

    @Test func `--create and --feed cannot be used together`() throws {
        // No server needs to listen at this address, because the command fails before it contacts one.
        let ended = try world.run("moult apply --create --feed http://127.0.0.1:9/feed.json -s new")
        #expect(ended.status == 64)
        #expect(
            ended.err
                == "moult: error: --create and --feed cannot be used together: a store follows the feed that it is created from: moult apply --create --store new http://127.0.0.1:9/feed.json\n  Try: moult apply --help\n",
            "\(ended.err)")
    }
}
