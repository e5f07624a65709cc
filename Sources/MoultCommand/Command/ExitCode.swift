internal import MoultBasics

struct ExitCode: RawRepresentable, Hashable, Sendable {
    let rawValue: Int32

    /// Success, including when there was nothing to do.
    static let done = Self(rawValue: 0)
    /// `plan` found changes.
    static let changes = Self(rawValue: 2)

    static func failure(_ outcome: MoultError.Outcome) -> Self { Self(rawValue: outcome.rawValue) }

    /// Every exit status of the command, with its meaning.
    static let meanings: [(status: ExitCode, meaning: String)] =
        ([
            (.done, "done, or nothing to do"),
            (
                .changes,
                "plan and --dry-run: the store would change; check: a newer release exists; diff: differences were found; cache: the cache is new and empty"
            ),
        ]
        + MoultError.Outcome.allCases.map { (.failure($0), $0.meaning) })
        .sorted { $0.status.rawValue < $1.status.rawValue }
}

extension MoultError.Outcome {
    /// The name of the status in JSON.
    var name: String {
        switch self {
        case .failed: "failed"
        case .refused: "refused"
        case .stale: "stale"
        case .undone: "undone"
        case .stuck: "stuck"
        case .usage: "usage"
        case .busy: "busy"
        }
    }

    var meaning: String {
        switch self {
        case .failed:
            "failed before anything was changed; verify, status --deep, inspect and steps test: a problem was found; publish --check: stores would refuse the feed"
        case .refused:
            "refused because of a requirement, a hold, a failed check, a missing or invalid signature, rows that would be lost, a missing or damaged database, the change budget, or too little disk space"
        case .stale: "the saved plan is out of date"
        case .undone: "the update failed and was undone"
        case .stuck: "the update could be neither finished nor undone"
        case .usage: "invalid command line"
        case .busy: "another update is running, a process has a database open, or the feed cannot be reached"
        }
    }
}
