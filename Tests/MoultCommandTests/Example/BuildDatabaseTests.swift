import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// An app whose build also builds its database. The tests run one after the other, because they use the same resources.
@Suite(.tags(.thorough, .slow), .serialized) struct BuildDatabaseTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Scenario 4: the build of the app has also built its database, which is then attached where it is.
    @Test func `the plugin builds the database of an app`() async throws {
        let resources = "\(try await ExampleApps.path("examples_Trees.resources"))/Database"
        #expect(try Files.list(resources) == ["release.json", "trees.db"])
        let database = "\(resources)/trees.db"
        let before = try #require(try Files.facts(database))
        let first = try await Project.run([ExampleApps.path("Trees"), "store"], in: scratch.path)
        #expect(first.output.hasPrefix("installed 1.2.0+"), "\(first.output)")
        #expect(first.output.hasSuffix("\nNorway spruce 50 m\nBeech 40 m\nOak, pedunculate 38 m\n"))
        #expect(
            try await Project.run([ExampleApps.path("Trees"), "store"], in: scratch.path).output.hasPrefix(
                "nothing new\n"))
        // The install neither copies nor changes the database.
        let link = try Project.must(["readlink", "-f", "store/trees.db"], in: scratch.path).trimmed
        #expect(try Files.facts(link)?.inode == before.inode)
        #expect(try Files.facts(database) == before)
    }

    /// The database is rebuilt only if an input has changed, and the same input gives the same bytes.
    @Test func `the plugin rebuilds the database only if an input has changed`() async throws {
        let database = "\(try await ExampleApps.path("examples_Trees.resources"))/Database/trees.db"
        var first = try #require(try Files.facts(database))
        let bytes = try Files.read(database, limit: 1 << 20)
        // The build tool is also an input, and SwiftPM may link it again after the first build.
        for _ in 0..<3 {
            try ExampleApps.build()
            let now = try #require(try Files.facts(database))
            if now == first { break }
            first = now
        }
        try ExampleApps.build()
        #expect(try Files.facts(database) == first)
        try Shell.must(["touch", "\(Project.root)/Examples/Sources/Trees/Database/trees.csv"])
        try ExampleApps.build()
        #expect(try #require(try Files.facts(database)).modified != first.modified)
        #expect(try Files.read(database, limit: 1 << 20) == bytes)

        // The command plugin packs the same databases into a release.
        let draft = "Sources/Trees/Database/draft.json"
        let output = scratch.path("releases")
        try Project.must(
            [
                "swift", "package", "--package-path", "Examples", "--scratch-path", ".build/examples",
                "--allow-writing-to-package-directory", "moult-pack", draft, "-o", output,
            ], in: Project.root, Project.home)
        #expect(try Files.list(output) == ["trees-1.2.0.json", "trees.db"])
        #expect(try Files.read("\(output)/trees.db", limit: 1 << 20) == bytes)
    }
}
