internal import MoultBasics
internal import MoultCore

/// What several verbs print.
extension Page {
    /// What is on hold and why, and how to end it.
    mutating func hold(_ hold: Settings.Hold, storeWords: [String]) {
        wrapped(StyledText(hold.sentence, .warning))
        line(
            "let \(hold.release == "*" ? "them" : "it") in again with: \(shellLine(["moult", "unhold"] + storeWords), .heading)"
        )
    }

    /// Which generations were removed, and which could not be.
    mutating func collected(_ report: Collector.Report, dry: Bool = false) {
        for name in report.removed {
            wrapped("\("-", .removed) generation \(name)\(dry ? " would be removed" : " was removed")")
        }
        for kept in report.kept {
            wrapped("\("=", .dim) generation \(kept.generation) stays: \(kept.why)")
        }
    }
}

extension Settings.Hold {
    /// What it is, without a full stop: `2.1.0 is on hold: it crashes`.
    var sentence: String {
        let what = release == "*" ? "every release is on hold" : "\(release) is on hold"
        return reason.isEmpty ? what : "\(what): \(reason)"
    }
}
