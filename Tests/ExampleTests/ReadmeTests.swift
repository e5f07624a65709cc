import MoultFiles
import TestSupport
import Testing

/// What the documents show and name is so.
@Suite(.timeLimit(.minutes(20))) struct ReadmeTests {
    /// Every command of these pages is run, and must print what stands below it.
    @Test(arguments: [
        "README.md", "docs/first-release.md", "docs/in-an-app.md", "docs/recover.md", "docs/running.md",
        "docs/troubleshooting.md", "docs/user-rows.md", "docs/follow-a-feed.md",
    ])
    func itsCommandsPrintWhatItShows(_ document: String) throws {
        let ended = try Project.run(["scripts/replay", document], in: Project.root)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        #expect(!ended.output.contains(": 0 commands"))
    }

    @Test func aPageThatShowsSomethingElseIsFoundOut() throws {
        let scratch = try Scratch()
        let page = scratch.path("page.md")
        try Files.writeNew(Array("```console\n$ echo one; echo two\none\n```\n".utf8), to: page)
        let ended = try Project.run(["scripts/replay", page], in: Project.root)
        #expect(ended.status == 1)
        #expect(ended.output.contains("1 commands, 1 print something else\n"))
        #expect(ended.output.hasSuffix("  shows:\n    one\n  but prints:\n    one\n    two\n"))
    }

    /// Every field that a verb prints is on the page about JSON, and every field on the page is printed.
    @Test func theJSONIsWhatItsPageSays() throws {
        let ended = try Project.run(["scripts/json-contract"], in: Project.root)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    @Test(arguments: [
        "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "manifests/README.md",
        "manifests/replace-on-new-version/README.md", "manifests/build-and-attach/README.md", "docs/README.md",
        "docs/first-release.md", "docs/following.md", "docs/in-an-app.md", "docs/recover.md", "docs/running.md",
        "docs/user-rows.md", "docs/troubleshooting.md", "docs/json.md", "docs/feeds.md", "docs/follow-a-feed.md",
        "docs/database-in-your-build.md", "integrations/ansible/README.md",
        "manifests/drop-when-incompatible/README.md", "manifests/complete-reset/README.md",
        "manifests/replace-live/README.md", "docs/consumers.md",
    ])
    func itsLinksLeadSomewhere(_ document: String) throws {
        let text = try Project.text(document)
        for link in text.matches(of: /\]\(([^)#:]+)\)/) {
            let path = "\(Project.root)/\(Files.directory(of: document))/\(link.output.1)"
            #expect(try Files.factsThroughLinks(path) != nil, "\(document) links to \(link.output.1)")
        }
    }
}
