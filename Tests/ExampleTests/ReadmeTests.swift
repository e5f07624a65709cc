import MoultFiles
import TestSupport
import Testing

/// What the documents show and name is so.
@Suite(.timeLimit(.minutes(20))) struct ReadmeTests {
    @Test func theTourPrintsWhatItShows() throws {
        let scratch = try Scratch()
        let directory = scratch.path("tour")
        try Shell.must(["cp", "-R", "\(Project.root)/manifests/replace-on-new-version", directory])
        let shown = Transcript(markdown: try Project.text("README.md"))
        try #require(shown.entries.count >= 8)
        for (shown, real) in zip(shown.entries, try shown.replayed(in: directory)) {
            #expect(
                shown.output.map { Transcript.stable($0, directory: "/home/you/tour") }
                    == real.output.map { Transcript.stable($0, directory: directory) },
                "\(shown.command)")
        }
    }

    @Test(arguments: [
        "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "manifests/README.md",
        "manifests/replace-on-new-version/README.md", "manifests/build-and-attach/README.md",
        "manifests/drop-when-incompatible/README.md", "manifests/complete-reset/README.md",
    ])
    func itsLinksLeadSomewhere(_ document: String) throws {
        let text = try Project.text(document)
        for link in text.matches(of: /\]\(([^)#:]+)\)/) {
            let path = "\(Project.root)/\(Files.directory(of: document))/\(link.output.1)"
            #expect(try Files.factsThroughLinks(path) != nil, "\(document) links to \(link.output.1)")
        }
    }
}
