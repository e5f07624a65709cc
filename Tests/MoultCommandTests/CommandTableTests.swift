import MoultBasics
import Testing

@testable import MoultCommand

/// Rules that hold for every verb.
@Suite struct CommandTableTests {
    @Test func `the names of verbs are distinct`() {
        #expect(Set(Command.all.map(\.name)).count == Command.all.count)
    }

    @Test(arguments: Command.all.map(\.name))
    func `every verb is described completely`(_ name: String) throws {
        let command = try #require(Command.all.first { $0.name == name })
        #expect(!command.examples.isEmpty)
        #expect(command.examples.contains { $0.line.contains("moult \(name)") })
        #expect(!command.summary.hasSuffix("."))
        #expect(command.summary.first?.isLowercase == true)
        for text in command.options.map(\.summary) + command.arguments.map(\.summary) {
            #expect(!text.hasSuffix("."), "\(text)")
            #expect(text.first?.isLowercase == false || text.hasPrefix("bash"), "\(text)")
        }
        let spellings = command.options.flatMap(\.spellings)
        #expect(Set(spellings).count == spellings.count)
        // The names of arguments differ, and no required argument follows an optional one.
        #expect(Set(command.arguments.map(\.name)).count == command.arguments.count)
        let optional = command.arguments.drop { $0.presence == .required }
        #expect(optional.allSatisfy { $0.presence != .required })
        #expect(command.arguments.dropLast().allSatisfy { $0.presence != .repeated })
    }

    /// Users copy examples, so the parser must accept each of them.
    @Test(arguments: Command.all.flatMap { $0.examples.map(\.line) })
    func `examples of verbs can be parsed`(_ line: String) throws {
        for part in line.split(separator: "moult ").dropFirst(line.hasPrefix("moult ") ? 0 : 1) {
            _ = try LineParser.parse(Self.words(String(part)), commands: Command.all)
        }
    }

    @Test(arguments: Topic.all.map(\.name))
    func `commands in topics can be parsed`(_ name: String) throws {
        let topic = try #require(Topic.all.first { $0.name == name })
        for case .literal(let text) in topic.text {
            for line in text.replacing("\\\n", with: " ").split(separator: "\n") where line.hasPrefix("moult ") {
                _ = try LineParser.parse(Self.words(String(line.dropFirst(6))), commands: Command.all)
            }
        }
    }

    /// Splits the first command into words as a shell would. Handles only the syntax that examples use: single quotes,
    /// and the end of the command.
    private static func words(_ line: String) -> [String] {
        var words: [String] = []
        for (index, piece) in line.split(separator: "'", omittingEmptySubsequences: false).enumerated() {
            if index % 2 == 1 {
                words.append(String(piece))
                continue
            }
            for word in piece.split(separator: " ") {
                if ["|", ">", "<", "&&", ";"].contains(word) { return words }
                words.append(word.hasSuffix(")") || word.hasSuffix(";") ? String(word.dropLast()) : String(word))
                if word.hasSuffix(";") { return words }
            }
        }
        return words
    }

    /// Examples must stay on one line so that they can be copied.
    @Test(arguments: Command.all.map(\.name))
    func `help is ASCII text in at most eighty columns`(_ name: String) throws {
        let command = try #require(Command.all.first { $0.name == name })
        var page = Page(for: Terminal())
        CommandHelp(command: command).write(to: &page)
        for line in page.text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
        #expect(page.text.utf8.allSatisfy { $0 == 10 || (32..<127).contains($0) })
    }

    @Test(arguments: Topic.all.map(\.name))
    func `topics are ASCII text in at most eighty columns`(_ name: String) throws {
        let topic = try #require(Topic.all.first { $0.name == name })
        var page = Page(for: Terminal())
        topic.write(to: &page)
        for line in page.text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
        #expect(page.text.utf8.allSatisfy { $0 == 10 || (32..<127).contains($0) })
    }

    @Test func `every exit status has a meaning`() {
        let statuses = ExitCode.meanings.map(\.status.rawValue)
        #expect(statuses == [0, 1, 2, 3, 4, 5, 6, 64, 75])
        #expect(Set(MoultError.Outcome.allCases.map(\.name)).count == MoultError.Outcome.allCases.count)
    }
}
