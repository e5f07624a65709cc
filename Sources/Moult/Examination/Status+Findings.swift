internal import MoultBasics
internal import MoultFiles
internal import StepKit

extension Status {
    /// What an operator should know, worst first. Monitoring and `moult status` show these findings.
    package func findings(at now: Timestamp = .now) -> [Finding] {
        let all = databases.flatMap(\.findings) + records(at: now) + releases(at: now) + leftovers
        return [.critical, .warning, .note].flatMap { severity in all.filter { $0.severity == severity } }
    }

    private func records(at now: Timestamp) -> [Finding] {
        var all: [Finding] = []
        if current == nil {
            let release = feed == nil ? ["RELEASE"] : []
            all.append(
                Finding(
                    .pointer, .critical, "nothing is installed",
                    advice: known?.newest == nil ? "Install a release with: \(moult: ["apply"] + release)" : nil))
        }
        all += unfinished.findings
        all += holds.all.map { hold in
            Finding(
                holds.fault == nil ? .hold : .holds, holds.fault == nil ? .warning : .critical, hold.sentence,
                advice: holds.remedy([hold]))
        }
        // The record of the last attempt is newer than the history, unless the update needed an operator.
        if let failure,
            failure.outcome == .stuck || attempt.map({ $0.failure == nil && $0.time < failure.time }) ?? true
        {
            all.append(
                Finding(
                    .failure, failure.outcome == .stuck ? .critical : .warning,
                    failure.sentence + (failure.reason.map { ": \($0)" } ?? ""),
                    advice: failure.remedy.map { Advice($0) }))
        }
        all += attempt?.findings(monitoring, followsFeed: feed != nil, at: now) ?? []
        if let obstacle {
            all.append(
                Finding(
                    .unwritable, .warning, path: root, "no update can be installed: \(obstacle)",
                    advice: "Make room, or make the file system writable."))
        }
        if let quarantineExcess {
            all.append(
                Finding(
                    .quarantine, .warning, "the quarantine is over its budget: \(quarantineExcess)",
                    why: "an update that would keep more is refused", advice: QuarantineBudget.advice))
        }
        for (kind, fault) in [(Finding.Kind.history, historyFault), (.quarantine, quarantineFault)] {
            guard let fault else { continue }
            all.append(Finding(kind, .warning, "\(fault.what): \(fault.why ?? "")", advice: fault.now))
        }
        return all
    }

    private func releases(at now: Timestamp) -> [Finding] {
        var all: [Finding] = []
        if let reason = known?.choice.withdrawn {
            let isReplaced = known?.newest != nil && known?.choice.isMissing == false
            all.append(
                Finding(
                    .withdrawn, .critical, "the installed release was withdrawn by its publisher: \(reason)",
                    advice: isReplaced
                        ? nil
                        : canRollBack
                            ? "Go back with: \(moult: "rollback")"
                            : #"No release is kept to go back to. With "onWithdrawn": "newest" in moult.json, the store installs an older one of the feed."#
                ))
        }
        if let revoked { all.append(Finding(.withdrawn, .critical, revoked.sentence)) }
        if let known, let newest = known.newest {
            all.append(
                known.choice.isMissing
                    ? Finding(
                        .newer, .warning, known.choice.unreadable, advice: "Check the feed with: \(moult: "check")")
                    : Finding(
                        .newer, window?.isOpen(at: now) == false ? .note : .warning,
                        "\(newest) is available and not installed",
                        why: downloader.map { "it is being downloaded by \($0.description)" }
                            ?? window.map { "updates are installed at \($0)" },
                        advice: downloader != nil
                            ? nil : "Install it with: \(moult: ["apply"] + (window == nil ? [] : ["\(newest)"]))"))
        }
        if let known, known.isExpired(at: now) {
            all.append(
                Finding(
                    .expiry, .warning, "the feed was valid until \(known.expires)",
                    why: "an attacker may be withholding newer ones",
                    advice: "Check for a newer one with: \(moult: "check")"))
        }
        if let lostKeyList {
            all.append(
                Finding(
                    .keyList, .warning, path: lostKeyList,
                    "the key list is missing, under which the release was installed",
                    why: "without it, no release is accepted", advice: "Get it from the feed: \(moult: "apply")"))
        }
        if let created = known?.created, created.seconds > now.seconds + 3600 {
            all.append(
                Finding(
                    .clock, .warning, "the clock of this machine shows \(now), and the feed was made at \(created)",
                    why: "with a wrong clock, an expired feed is accepted", advice: "Correct the clock."))
        }
        if let text = keyList?.warning(at: now) { all.append(Finding(.expiry, .warning, text)) }
        if let age, age.isOver(at: now) {
            all.append(
                Finding(
                    .age, .critical, age.sentence, why: age.reason,
                    advice: "Install a newer release with: \(moult: "apply")"))
        }
        if let expires, expires < now {
            all.append(Finding(.expiry, .warning, "the release was valid until \(expires)"))
        }
        return all
    }

    private var leftovers: [Finding] {
        var names: [String] = []
        for set in uncarried where !names.contains(set.record?.database ?? "") {
            names.append(set.record?.database ?? "")
        }
        let rows = names.map { name in
            let own = uncarried.filter { $0.record?.database == name }
            let count = own.flatMap { $0.record?.rows ?? [:] }.reduce(0) { $0 + $1.value }
            let isUncounted = own.contains { $0.record?.rows == nil }
            let what = isUncounted ? "rows" : counted(count, "row")
            return Finding(
                .uncarried, .warning, database: name,
                "\(name): \(what) that an update did not carry over "
                    + "\(!isUncounted && count == 1 ? "is" : "are") in quarantine",
                advice: "See them with: \(moult: "quarantine")")
        }
        let readers = waitsForReaders ? laggards : []
        return rows + readers.map { Finding(.laggard, .warning, $0.text) }
    }
}
