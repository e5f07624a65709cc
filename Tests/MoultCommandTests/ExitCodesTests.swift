import MoultBasics
import MoultFiles
import TestSupport
import Testing

@testable import MoultCommand

/// The exit statuses in the documentation, in `moult help exit-codes` and in the help of each verb agree.
@Suite struct ExitCodesTests {
    private static let page = "docs/running.md"

    /// Returns the rows of the table in the documentation: status and meaning.
    private func rows() throws -> [(status: String, meaning: String)] {
        let text = String(decoding: try Files.read(Self.page, limit: 1 << 20) ?? [], as: UTF8.self)
        let section = try #require(text.split(separator: "## Exit status\n").last?.split(separator: "\n## ").first)
        return section.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map(\.trimmed)
            return cells.count >= 2 && Int(cells[0]) != nil ? (cells[0], cells[1].replacing("`", with: "")) : nil
        }
    }

    @Test func `the page and the topic have the same statuses with the same meanings`() throws {
        let topic = ExitCode.meanings.map { (status: "\($0.status.rawValue)", meaning: $0.meaning) }
        let page = try rows()
        #expect(page.map(\.status) == topic.map(\.status))
        for (on, at) in zip(page, topic) { #expect(on.meaning == at.meaning, "\(at.status)") }
    }

    /// The topic also contains the special meanings of a status in the help of a verb.
    @Test func `the topic names the verbs for which a status has a special meaning`() throws {
        let meanings = Dictionary(uniqueKeysWithValues: ExitCode.meanings.map { ($0.status.rawValue, $0.meaning) })
        for (status, verbs) in [
            (1, ["verify", "status --deep", "inspect", "steps test", "publish --check"]),
            (2, ["plan", "check", "diff", "cache"]),
        ] {
            for verb in verbs { #expect(meanings[Int32(status)]?.contains(verb) == true, "\(status) of \(verb)") }
        }
        #expect(meanings[3]?.contains("disk space") == true)
    }

    @Test(arguments: Command.all.map(\.name))
    func `a verb lists only statuses of the topic, and lists each status with a special meaning`(
        _ name: String
    ) throws {
        let command = try #require(Command.all.first { $0.name == name })
        let known = Set(ExitCode.meanings.map(\.status))
        for exit in command.exits { #expect(known.contains(exit.status), "\(exit.status.rawValue)") }
        let own = Dictionary(uniqueKeysWithValues: command.exits.map { ($0.status.rawValue, $0.meaning) })
        // The verbs that report a finding or a difference.
        let differing: [String: [Int32]] = [
            "plan": [2], "check": [2], "diff": [1, 2], "cache": [2], "verify": [1], "status": [1, 2], "inspect": [1],
            "steps": [1], "publish": [1, 6], "rollback": [2], "reset": [2], "replace": [2],
        ]
        for status in differing[name] ?? [] { #expect(own[status] != nil, "\(name) exits with \(status)") }
    }
}
