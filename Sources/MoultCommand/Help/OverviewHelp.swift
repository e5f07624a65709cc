internal import Moult
package import MoultBasics
internal import StepKit

/// The output of `moult help`: every verb and topic.
package struct OverviewHelp: Report {
    private let commands: [Command]

    package init(commands: [Command]) { self.commands = commands }

    package func write(to page: inout Page) {
        page.paragraph(
            "moult updates SQLite databases: verified, all or nothing, and with rollback.")
        page.line()
        page.line("\("Usage:", .heading) moult VERB [options] [arguments]")
        // All groups use the same width, so that their summaries line up.
        let width = (commands.map(\.name) + Topic.all.map(\.name)).map(\.count).max() ?? 0
        for group in Command.Group.allCases {
            section(group.rawValue, commands.filter { $0.group == group }.map { ($0.name, $0.summary) }, width, &page)
        }
        section("Topics", Topic.all.map { ($0.name, $0.summary) }, width, &page)
        page.line()
        page.line("More: moult help VERB, moult help TOPIC")
    }

    private func section(_ title: String, _ items: [(String, String)], _ width: Int, _ page: inout Page) {
        guard !items.isEmpty else { return }
        page.heading(title)
        page.list(items.map { ("\($0.0)", $0.1) }, minWidth: width)
    }

    package var json: JSON {
        [
            "commands": .array(commands.map { CommandHelp($0).json }),
            "topics": .array(Topic.all.map { ["name": .string($0.name), "summary": .string($0.summary)] }),
        ]
    }
}
