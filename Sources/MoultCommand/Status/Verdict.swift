internal import Moult
internal import MoultBasics

/// The state of a store for a monitoring system: the state of its worst finding.
struct Verdict {
    /// The raw values are the exit statuses of Nagios checks.
    enum State: Int32, Comparable {
        case ok, warning, critical, unknown

        static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
    }

    struct Finding: Equatable {
        let state: State
        let text: String
    }

    /// The findings, worst first.
    let findings: [Finding]

    var state: State { findings.first?.state ?? .ok }

    init(_ findings: [Finding]) { self.findings = findings }

    init(_ status: Status, at now: Timestamp = .now) {
        var critical: [String] = []
        if status.current == nil { critical.append("nothing is installed") }
        for file in status.databases where file.state.isFault {
            critical.append("\(file.name) is \(file.state.rawValue)" + (file.note.map { ", \($0)" } ?? ""))
        }
        if status.unfinished.workers.isEmpty { critical += status.unfinished.sentences }
        if let reason = status.known?.choice.withdrawn {
            critical.append("the installed release was withdrawn: \(reason)")
        }
        if let revoked = status.revoked { critical.append(revoked.sentence) }
        var warning: [String] = []
        let unverified = status.databases.filter { $0.state == .unverified }.map(\.name)
        if !unverified.isEmpty { warning.append("copied and not verified: \(unverified.joined(separator: ", "))") }
        for file in status.databases where file.state == .blocked {
            warning.append("\(file.name) cannot be updated: \(file.note ?? "")")
        }
        for file in status.databases where file.isUnread {
            warning.append("\(file.name) is not checked: \(file.finding?.notChecked.joined(separator: "; ") ?? "")")
        }
        if let failure = status.failure {
            let text = failure.sentence + (failure.reason.map { ": \($0)" } ?? "")
            if failure.outcome == .stuck { critical.append(text) } else { warning.append(text) }
        }
        if status.holds.fault == nil {
            warning += status.holds.all.map(\.sentence)
        } else {
            critical += status.holds.all.map(\.sentence)
        }
        for fault in [status.historyFault, status.quarantineFault].compactMap({ $0 }) {
            warning.append("\(fault.what): \(fault.why ?? "")")
        }
        if let known = status.known, let newest = known.newest {
            warning.append(
                known.choice.isMissing ? known.choice.unreadable : "\(newest) is available and not installed")
        }
        if let known = status.known, known.isExpired(at: now) {
            warning.append("the feed was valid until \(known.expires)")
        }
        if let text = status.keyList?.warning(at: now) { warning.append(text) }
        if let expires = status.expires, expires < now { warning.append("the release was valid until \(expires)") }
        warning += status.uncarriedRows
        if status.waitsForReaders { warning += status.laggards.map(\.text) }
        findings =
            critical.map { Finding(state: .critical, text: $0) } + warning.map { Finding(state: .warning, text: $0) }
    }
}
