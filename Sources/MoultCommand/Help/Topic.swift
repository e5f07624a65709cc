package import MoultBasics

/// A concept that `moult help` explains: more than one verb needs it.
package struct Topic: Sendable, Report {
    package let name: String
    package let summary: String
    package let text: [Prose]

    package static let all: [Topic] = [
        .draft, .kinds, .settings, .plans, .steps, .feeds, .keys, .patches, .exitCodes,
    ]

    package func write(to page: inout Page) {
        page.line("\(name, .heading): \(summary)")
        page.line()
        page.prose(text)
    }

    package var json: JSON {
        var page = Page(for: Terminal())
        page.prose(text)
        return ["name": .string(name), "summary": .string(summary), "text": .string(page.text)]
    }
}

extension Topic {
    static let exitCodes = Topic(
        name: "exit-codes", summary: "what the exit status of moult tells a script",
        text: [
            "These numbers do not change their meaning from one version to the next.",
            .list(ExitCode.meanings.map { ("\($0.status.rawValue)", $0.meaning) }),
            """
            With 1, 3, 4, 5, 64 and 75 the databases are as they were before. With 6 they may not be: read the \
            message before anything else.
            """,
            """
            One verb has numbers of its own if it is asked to: moult status --nagios ends as a check of Nagios does, \
            with 0, 1 (warning), 2 (critical) or 3 (unknown).
            """,
            """
            With --json the error is an object on stdout that carries the same number as "exit", its name as \
            "outcome", and a "code" that tells one error from another.
            """,
        ])
}
