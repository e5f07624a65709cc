import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

@Suite struct InitVerbTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    @Test func `init creates a store and suggests the next command`() throws {
        #expect(
            try scratch.moult("moult init --product org.example.test") == (
                0,
                """
                + ./store: a store for org.example.test, which accepts newer releases only
                install a release with: moult apply RELEASE

                """, ""
            ))
        let settings = try Settings.read(StoreLayout(root: scratch.path("store")))
        #expect(settings == Settings(product: "org.example.test"))
    }

    @Test(arguments: [
        ("ftp://example.org/feed.json", "ftp://example.org/feed.json cannot be used: it has the scheme ftp"),
        (
            "https://me:secret@example.org/feed.json",
            "https://***@example.org/feed.json cannot be used: it contains a password"
        ),
    ])
    func `init refuses an invalid feed address and creates no store`(_ feed: String, message: String) throws {
        let run = try scratch.moult("moult init --product org.example.test --feed \(feed)")
        #expect(run.status == 3)
        #expect(run.err.hasPrefix("moult: error: \(message)\n"), "\(run.err)")
        #expect(!(run.out + run.err).contains("secret"))
        #expect(try scratch.moult("[ -e store ]").status == 1)
    }

    @Test func `the suggested command specifies a store that is not at the default path`() throws {
        #expect(
            try scratch.moult("moult init 'my data' --product org.example.test --follow match --app 3.4.0") == (
                0,
                """
                + my data: a store for org.example.test, which accepts any release
                install a release with: moult apply RELEASE --store 'my data'

                """, ""
            ))
        let settings = try Settings.read(StoreLayout(root: scratch.path("my data")))
        #expect(settings.follow == .match)
        #expect(settings.app?.description == "3.4.0")
    }

    @Test(arguments: ["moult init --store s --product a.b", "MOULT_STORE=s moult init --product a.b"])
    func `init creates the store at the path in --store or MOULT_STORE`(_ line: String) throws {
        #expect(try scratch.moult(line).status == 0)
        #expect(try Settings.read(StoreLayout(root: scratch.path("s"))).product == "a.b")
    }

    @Test func `init --json prints the new store`() throws {
        #expect(
            try scratch.moult("moult init s --product a.b --json").out
                == #"{"format":1,"store":"\#(scratch.path("s"))","created":true,"product":"a.b","follow":"newer"}"#
                + "\n")
    }

    @Test func `init keeps existing files`() throws {
        try scratch.mustMoult("mkdir store; echo precious > store/food.db")
        #expect(try scratch.moult("moult init --product a.b").status == 0)
        #expect(try scratch.text("store/food.db") == "precious\n")
    }
}
