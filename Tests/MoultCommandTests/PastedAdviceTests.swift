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
}
