import TestSupport
import Testing

/// Apps that use the library, as their authors would write them.
@Suite(.tags(.thorough, .slow)) struct ExampleAppTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try Project.packPhrasebook(in: scratch.path)
    }

    private func phrasebook(_ arguments: String...) async throws -> Shell.Ended {
        try await Project.run([ExampleApps.path("Phrasebook")] + arguments, in: scratch.path)
    }

    /// Scenario 1: each version of an app installs its own data when it starts, and keeps the user's rows.
    @Test func `each version of the example app installs its bundled data and keeps the user's rows`() async throws {
        let (one, two) = ("releases/phrasebook-1.0.0.json", "releases/phrasebook-2.0.0.json")
        let first = try await phrasebook(one, "store", "it's mine")
        #expect(first.output.hasPrefix("installed 1.0.0+"))
        #expect(first.output.contains("\nphrases 1.0.0:\n"))
        #expect(first.output.hasSuffix("\nnote: it's mine\n"))
        #expect(try await phrasebook(one, "store").output.hasPrefix("nothing new\nphrases 1.0.0:\n"))

        let second = try await phrasebook(two, "store")
        #expect(second.output.hasPrefix("installed 2.0.0+"))
        // Only the second release contains this row.
        #expect(second.output.contains("\n  en cykel - a bicycle\n"))
        #expect(second.output.hasSuffix("\nnote: it's mine\n"))

        let downgraded = try await phrasebook(one, "store")
        #expect(downgraded.output.hasPrefix("installed 1.0.0+"))
        #expect(!downgraded.output.contains("en cykel"))
        #expect(downgraded.output.hasSuffix("\nnote: it's mine\n"))
    }

    @Test func `an app that bundles a bad release keeps its data`() async throws {
        let one = "releases/phrasebook-1.0.0.json"
        #expect(try await phrasebook(one, "store").status == 0)
        try Shell.must(["truncate", "-s", "-1", "releases/phrasebook-2.0.0.tar.zst"], in: scratch.path)
        let bad = try await phrasebook("releases/phrasebook-2.0.0.json", "store")
        #expect(bad.status == 1)
        #expect(bad.output.hasPrefix("cannot open the phrases: the bundle "))
        #expect(try await phrasebook(one, "store").output.hasPrefix("nothing new\nphrases 1.0.0:\n"))
    }

    /// Scenario 2: an update replaces data that the app has open.
    @Test func `the example board keeps running while its data is replaced`() async throws {
        for version in ["1.0.0", "2.0.0"] {
            let draft = "\(Project.root)/manifests/replace-live/prices-\(version).draft.json"
            _ = try Project.must(["moult", "pack", draft, "-o", "prices"], in: scratch.path)
        }
        let ended = try await Project.run(
            [ExampleApps.path("Board"), "board", "prices/prices-1.0.0.json", "prices/prices-2.0.0.json"],
            in: scratch.path)
        #expect(
            ended.output == """
                prices 1.0.0
                  apple: 40
                  bread: 320
                closed for a moment
                new: price
                prices 2.0.0
                  apple: 45
                  bread: 320

                """)
    }

    @Test func `the example list reads and draws only the rows that changed`() async throws {
        let ended = try await Project.run(
            [ExampleApps.path("WordList"), "list", "releases/phrasebook-1.0.0.json", "releases/phrasebook-2.0.0.json"],
            in: scratch.path)
        #expect(
            ended.output.split(separator: "\n").drop { $0 != "2.0.0:" } == [
                "2.0.0:", "~ kvittering - receipt", "+ en cykel - a bicycle", "+ er der langt? - is it far?",
                "+ godaften - good evening", "+ havnen - the harbour", "+ hjælp! - help!",
                "+ hvad hedder du? - what is your name?", "+ jeg forstår det ikke - I do not understand",
                "+ jordbær - strawberries", "+ regningen tak - the bill, please", "the list is complete",
            ], "\(ended.errors)")
    }

    @Test func `the example app has fewer than 60 lines`() throws {
        let lines = try Project.text("Examples/Sources/Phrasebook/main.swift").split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count < 60)
    }

    /// The library code in the README comes from an app that is built and run here.
    @Test func `the Swift code in the README is the code of an example app`() async throws {
        let source = try Project.text("Examples/Sources/TenLines/main.swift")
        #expect(try Project.text("README.md").contains("```swift\n\(source)```\n"))
        let ended = try await Project.run([ExampleApps.path("TenLines")], in: scratch.path)
        #expect(ended.status == 0)
        #expect(ended.output.contains("kvittering - receipt\n"))
        #expect(try Project.must(["moult", "sql", "SELECT text FROM note"], in: scratch.path).contains("rye bread"))
    }
}
