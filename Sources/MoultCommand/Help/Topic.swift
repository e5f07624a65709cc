internal import MoultBasics

/// A concept that `moult help` explains because several verbs need it.
struct Topic: Sendable, Report {
    let name: String
    let summary: String
    let text: [Prose]

    static let all: [Topic] = [
        .draft, .kinds, .settings, .plans, .steps, .feeds, .keys, .patches, .options, .exitCodes,
    ]

    func write(to page: inout Page) {
        page.line("\(name, .heading): \(summary)")
        page.line()
        page.prose(text)
    }

    var json: JSON {
        var page = Page(for: Terminal())
        page.prose(text)
        return .record(["name": name, "summary": summary, "text": page.text])
    }
}

extension Topic {
    static let options = Topic(
        name: "options", summary: "the options and environment variables that most verbs accept",
        text: [
            .list(
                [Option.store, .json, .quiet, .verbose, .help, .version].map { ($0.term, $0.summary) }),
            .list([
                ("MOULT_STORE", "The store, if --store is not given"),
                ("NO_COLOR", "If set, output has no colours"),
            ]),
        ])

    static let exitCodes = Topic(
        name: "exit-codes", summary: "what each exit status means",
        text: [
            "The meaning of these numbers does not change between versions.",
            .list(ExitCode.meanings.map { ("\($0.status.rawValue)", $0.meaning) }),
            """
            After 1, 3, 4, 5, 64 and 75 the databases are unchanged, except by earlier statements of \
            `moult sql --write`, and by an earlier release that the message names. After 6 some may have changed: the message says what to do.
            """,
            """
            `moult status --nagios` uses the numbers of Nagios instead: 0 (ok), 1 (warning), 2 (critical) and 3 \
            (unknown).
            """,
            """
            With --json the error is an object on stdout: "exit" is the exit status, "outcome" its name, and "code" \
            identifies the error (docs/troubleshooting.md).
            """,
        ])
}
