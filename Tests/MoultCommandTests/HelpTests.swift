import Moult
import MoultBasics
import StepKit
import Testing

@testable import MoultCommand

@Suite struct HelpTests {
    private func text(_ report: some Report, width: Int? = nil) -> String {
        var page = Page(for: Terminal(width: width))
        report.write(to: &page)
        return page.text
    }

    @Test func `the help of a verb is made from its definition`() {
        #expect(
            text(CommandHelp(command: SampleCommands.apply)) == """
                moult apply: do apply

                Usage: moult apply [options] MANIFEST [NAME]

                Examples:
                  Do it:
                    moult apply

                Arguments and options:
                  MANIFEST            The manifest
                  NAME                A name
                  -o, --out FILE      Write it to FILE
                      --keep N        How many to keep
                      --only NAME...  Only this database
                      --kind KIND     Only this [kind]: user or cache
                  -f, --force         Do it all the same

                Common options: -s, --store DIR; --json; -q, --quiet; -v, --verbose; -h, --help.
                See: moult help options

                """)
    }

    @Test func `help text is at most a hundred columns wide`() {
        for topic in Topic.all {
            for line in text(topic, width: 200).split(separator: "\n") { #expect(line.count <= 100) }
        }
    }

    @Test(arguments: [20, 30, 40, 80, nil]) func `no line of help ends with a space`(width: Int?) {
        let pages =
            [text(OverviewHelp(commands: Command.all, listsAll: true), width: width)]
            + Command.all.map { text(CommandHelp(command: $0), width: width) }
            + Topic.all.map { text($0, width: width) }
        for line in pages.flatMap({ $0.split(separator: "\n") }) { #expect(line.last != " ", "\(line)") }
    }

    @Test func `the overview names every verb and topic`() {
        let overview = text(OverviewHelp(commands: Command.all, listsAll: true))
        for name in Command.all.map(\.name) + Topic.all.map(\.name) { #expect(overview.contains("\n  \(name) ")) }
    }

    /// Help shows the shortest form first, and each draft and settings file in a topic can be copied and used.
    @Test func `the parsers accept the drafts and settings in the topics`() throws {
        var count = 0
        for topic in Topic.all {
            for case .literal(let text) in topic.text where text.hasPrefix("{") {
                if topic.name == "draft" {
                    _ = try Manifest(parsing: Array(text.utf8), as: .draft, source: topic.name)
                } else {
                    _ = try Settings(parsing: Array(text.utf8), source: topic.name)
                }
                count += 1
            }
        }
        #expect(count == 4)
    }

    @Test func `the help of apply fits on one screen and begins with examples`() throws {
        let lines = text(CommandHelp(command: try #require(Command.all.first { $0.name == "apply" })), width: 80).split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 41, "\(lines.count - 1) lines")
        #expect(lines[4] == "Examples:")
    }

    @Test(arguments: Command.all.map(\.name)) func `every verb shows examples before options`(_ name: String) throws {
        let help = text(CommandHelp(command: try #require(Command.all.first { $0.name == name })), width: 80)
        let examples = try #require(help.firstRange(of: "\nExamples:\n"))
        if let options = help.firstRange(of: "ptions:\n") { #expect(examples.lowerBound < options.lowerBound) }
    }

    @Test(arguments: ["draft", "settings"]) func `each topic fits on one screen and names its page in docs`(
        _ name: String
    ) throws {
        let topic = try #require(Topic.all.first { $0.name == name })
        let lines = text(topic, width: 100).split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 50)
        #expect(lines.contains { $0.contains("docs/\(name == "draft" ? "manifest" : name).md") })
    }

    @Test func `help as JSON has the same content`() throws {
        let json = CommandHelp(command: SampleCommands.apply).json
        #expect(json["usage"]?.string == "moult apply [options] MANIFEST [NAME]")
        let options = try #require(json["options"]?.array)
        #expect(options.compactMap { $0["name"]?.string }.first == "out")
        #expect(options.count == SampleCommands.apply.options.count)
    }
}
