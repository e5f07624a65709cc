package import MoultBasics

/// How the command ended, for the script that called it.
package struct ExitCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }

    /// Done, or there was nothing to do.
    package static let done = Self(rawValue: 0)
    /// `plan` found changes.
    package static let changes = Self(rawValue: 2)

    package static func failure(_ outcome: MoultError.Outcome) -> Self { Self(rawValue: outcome.rawValue) }

    /// Every status the command can end with, and what it means.
    package static let meanings: [(status: ExitCode, meaning: String)] =
        ([
            (.done, "done, or there was nothing to do"),
            (.changes, "plan: changes are due; check: a newer release exists; cache: it is new and empty"),
        ]
        + MoultError.Outcome.allCases.map { (.failure($0), $0.meaning) })
        .sorted { $0.status.rawValue < $1.status.rawValue }
}

extension MoultError.Outcome {
    /// The word for it in JSON.
    package var name: String {
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

    package var meaning: String {
        switch self {
        case .failed: "failed before anything was changed; verify: a check found a fault"
        case .refused: "refused: by a constraint, a hold, a check of the data, a damaged database, or the change budget"
        case .stale: "the saved plan no longer fits what is there; the message says what changed"
        case .undone: "failed and undone: the old data is intact"
        case .stuck: "could not be undone: an operator is needed; the message says what and where"
        case .usage: "wrong usage of the command"
        case .busy: "try later: another update is running, a program has a database open, or the feed cannot be reached"
        }
    }
}
