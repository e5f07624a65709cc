import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Tests the documentation: its commands run, and its links lead to existing files.
@Suite(.tags(.slow)) struct ReadmeTests {
    /// The pages whose terminal sessions need a server that `make test` does not install.
    private static let servers = ["docs/hosting.md"]

    @Test(.tags(.thorough), arguments: servers)
    func `the commands of a page about servers print the shown output`(_ document: String) throws {
        try `the commands of each page print the shown output`(document)
    }

    /// Every terminal session on a page is run, and must print the shown output.
    @Test(
        arguments: try Project.pages().filter { try Project.text($0).contains("```console") && !servers.contains($0) })
    func `the commands of each page print the shown output`(_ document: String) throws {
        let ended = try Project.run(["scripts/replay", document], in: Project.root)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        #expect(!ended.output.contains(": 0 commands"))
    }

    /// Two tests of this suite take all pages as arguments.
    @Test func `README, guides and integration pages are among the tested pages`() throws {
        let pages = try Project.pages()
        for page in ["README.md", "docs/publish.md", "integrations/ansible/README.md"] {
            #expect(pages.contains(page))
        }
    }

    @Test func `a replay fails if the output differs from the page`() throws {
        let scratch = try Scratch()
        let page = scratch.path("page.md")
        try Files.writeNew(Array("```console\n$ echo one; echo two\none\n```\n".utf8), to: page)
        let ended = try Project.run(["scripts/replay", page], in: Project.root)
        #expect(ended.status == 1)
        #expect(ended.output.contains("1 commands, 1 with different output\n"))
        #expect(ended.output.hasSuffix("  shows:\n    one\n  but prints:\n    one\n    two\n"))
    }

    @Test func `the recording in the README shows what the commands print`() throws {
        let ended = try Project.run(["scripts/record", "--check"], in: Project.root)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    /// Every field that a verb prints is on the page about JSON, and every field on the page is printed.
    @Test func `the JSON output of every verb matches the page about JSON`() throws {
        let ended = try Project.run(["scripts/json-contract"], in: Project.root)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    @Test(arguments: try Project.pages())
    func `the links on each page lead to existing files and headings`(_ document: String) throws {
        for link in try Project.text(document).matches(of: /\]\(([^)#:]*)(?:#([^):]*))?\)/) {
            let (file, anchor) = (link.output.1, link.output.2)
            let path = file.isEmpty ? document : "\(Files.directory(of: document))/\(file)"
            let isThere = try Files.factsThroughLinks("\(Project.root)/\(path)") != nil
            #expect(isThere, "\(document) links to \(file)")
            if isThere, path.hasSuffix(".md"), let anchor {
                let anchors = Self.anchors(in: try Project.text(path))
                #expect(anchors.contains(anchor), "\(document) links to \(file)#\(anchor)")
            }
        }
    }

    @Test func `the anchor of a heading is found, and no line of a code block is a heading`() {
        let page = "# Some `code`: a title\n\n```sh\n# a comment\n```\n\n## Second, title\n"
        #expect(Self.anchors(in: page) == ["some-code-a-title", "second-title"])
    }

    /// Returns the anchors of all headings in a page, as web sites for repositories make them.
    private static func anchors(in page: String) -> Set<Substring> {
        var (isCode, anchors): (Bool, Set<Substring>) = (false, [])
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") { isCode.toggle() }
            guard !isCode, line.hasPrefix("#") else { continue }
            let words = line.drop { $0 == "#" }.trimmed.lowercased()
            let kept = words.filter { $0.isLetter || $0.isNumber || " -_".contains($0) }
            anchors.insert(kept.replacing(" ", with: "-")[...])
        }
        return anchors
    }
}
