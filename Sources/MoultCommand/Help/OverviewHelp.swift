internal import Moult
internal import MoultBasics
internal import StepKit

/// The output of `moult help`: the verbs that most users need, or all verbs and topics.
struct OverviewHelp: Report {
    private static let first = [
        "replace", "pack", "publish", "plan", "apply", "status", "verify", "rollback", "recover", "quarantine",
    ]

    let commands: [Command]
    let listsAll: Bool

    func write(to page: inout Page) {
        page.paragraph("moult updates SQLite databases: verified, all or nothing, and with rollback.")
        page.line()
        page.line("\("Usage:", .heading) moult VERB [options] [arguments]")
        guard listsAll else {
            section(
                "Verbs that most users need",
                Self.first.compactMap { name in commands.first { $0.name == name }.map { (name, $0.summary) } }, 0,
                &page)
            page.line()
            page.line("More: moult help VERB. All verbs and topics: moult help all")
            return
        }
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

    var json: JSON {
        .record([
            "commands": commands.map { CommandHelp(command: $0).json },
            "topics": Topic.all.map { JSON.record(["name": $0.name, "summary": $0.summary]) },
        ])
    }
}
