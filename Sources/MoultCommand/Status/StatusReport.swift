internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// The output of `moult status` for humans.
struct StatusReport: Report {
    let status: Status
    let completing: (Advice) -> Advice

    var findings: [Finding] { status.findings().map { $0.advising(completing) } }

    func write(to page: inout Page) {
        page.line("\(status.product + version, .heading)")
        let findings = findings
        let ofDatabases = findings.filter { $0.database != nil && $0.path != nil }
        // Holds have lines of their own.
        page.findings(findings.filter { ![.hold, .holds, .pointer].contains($0.kind) && !ofDatabases.contains($0) })
        writeFacts(to: &page)
        page.holds(status.holds)
        // The heading says that nothing is installed.
        if let advice = findings.first(where: { $0.kind == .pointer })?.advice { page.wrapped(StyledText(advice)) }
        // Holds are printed above.
        for skipped in status.known?.choice.skipped ?? [] where !status.holds.names(skipped.version) {
            page.wrapped("\("=", .dim) \("\(skipped.version)") is skipped: \(skipped.why)")
        }
        if !status.waitsForReaders {
            for laggard in status.laggards { page.wrapped(StyledText(laggard.text, .warning)) }
        }
        if !status.databases.isEmpty {
            page.heading("Databases")
            page.table(databases(page.terminal))
            page.advice(of: ofDatabases)
        }
        if !status.generations.isEmpty {
            page.heading("Generations")
            page.table(generations)
        }
        if !status.consumers.isEmpty {
            page.heading("Consumers")
            page.table(consumers)
        }
    }

    private var version: String {
        status.current.map { " \(Generation.version(of: $0.name))" } ?? ": nothing is installed"
    }

    private func writeFacts(to page: inout Page) {
        let terminal = page.terminal
        func text(_ time: Timestamp?) -> StyledText? { time.map { StyledText($0.text(for: terminal)) } }
        let made = text(status.known?.created).map { " of \($0)" as StyledText } ?? ""
        let until = text(status.keyList?.expires).map { ", valid until \($0)" as StyledText } ?? ""
        page.facts(
            [
                "store": StyledText(status.root),
                "follows": "\(status.follow.rawValue)\(status.app.map { ", app \($0)" } ?? "")",
                "feed": status.feed.map { StyledText($0) },
                "known": status.known.map {
                    "serial \($0.serial)\(made), valid until \($0.expires.text(for: terminal))"
                }, "trusts": StyledText(status.keys?.summary ?? "no key, so signatures are not checked"),
                "keys": status.keyList.map { "\($0.name)\(until)" }, "since": text(status.since),
                "created": text(status.created), "expires": text(status.expires),
                "guard": status.isFullyConfined ? nil : StyledText(status.protection, .warning),
                "last": status.last.map { attempt($0, terminal) },
            ], indent: 2)
    }

    func attempt(_ entry: History.Entry, _ terminal: Terminal) -> StyledText {
        let reason = entry.reason.map { ": \($0)" } ?? ""
        return "\(entry.sentence, entry.outcome.style), \(entry.time.text(for: terminal))\(reason)"
    }

    private func databases(_ terminal: Terminal) -> Table {
        var table = Table(.left(gap: 1), .left, .left, .right, .left, indent: 2)
        for state in status.databases {
            table.row(
                mark(state, terminal), "\(state.database.name)", "\(state.database.kind.rawValue)",
                "\(state.size.map { "\(ByteCount($0))" } ?? "-")", words(state, terminal))
            for why in state.notChecked { table.row(" ", "", "", "", "not checked: \(why)") }
        }
        return table
    }

    /// Returns the mark to print in front of a database. A tick marks only files that were read and have not changed since.
    private func mark(_ state: DatabaseState, _ terminal: Terminal) -> StyledText {
        if state.fault != nil || state.state == .blocked { return "\(terminal.symbols.cross, .bad)" }
        let wasRead = state.state == .sound || state.state == .living && [.check, .deep].contains(state.depth)
        return wasRead ? "\(terminal.symbols.tick, .good)" : "\(terminal.symbols.dot, .dim)"
    }

    func words(_ state: DatabaseState, _ terminal: Terminal) -> StyledText {
        switch state.state {
        case .sound: return "read-only, verified\(state.proof.map { ": \($0)" } ?? "")"
        case .living where !state.notChecked.isEmpty: return "exists"
        case .living:
            guard state.depth != .glance, let time = state.time else {
                return "opens, schema matches; to check its pages: \(run: ["moult", "verify", state.database.name])"
            }
            return "sound on \(time.text(for: terminal)), unchanged since"
        case .unverified: return "copied; not verified"
        case .missing: return "missing: \(note(state))"
        case .changed: return "changed: \(note(state))"
        case .damaged: return "needs repair: \(note(state))"
        case .blocked: return StyledText(state.findings.first?.what ?? "")
        }
    }

    /// Returns what is wrong with a database, with the path if it is another one than that of the database.
    private func note(_ state: DatabaseState) -> StyledText {
        guard let finding = state.findings.first else { return "" }
        if finding.kind == .missing { return StyledText(finding.path ?? "") }
        return StyledText(finding.path == state.path ? finding.what : finding.description)
    }

    private static let mostHolders = 5

    private var generations: Table {
        var table = Table(.left, .right, .left, indent: 2)
        for generation in status.generations.reversed() {
            // A server may have thousands of processes; `moult status --processes` lists them.
            let count = generation.holders.count
            let holders =
                generation.holders.prefix(Self.mostHolders).map(\.description).joined(separator: ", ")
                + (count > Self.mostHolders
                    ? " and \(counted(count - Self.mostHolders, "more process", "more processes"))" : "")
            table.row(
                "\(generation.name)", "\(ByteCount(generation.size))",
                (generation.isCurrent ? "in service" : "kept") + (holders.isEmpty ? "" : "; read by \(holders)"))
        }
        return table
    }

    private var consumers: Table {
        var table = Table(.left, .left, .left, indent: 2)
        for consumer in status.consumers {
            table.row(
                "\(consumer.name)", "by \(consumer.by)",
                "\(consumer.databases?.joined(separator: ", ") ?? "every database")")
        }
        return table
    }

    var json: JSON {
        .record([
            "store": status.root, "time": Timestamp.now.description, "product": status.product,
            "severity": findings.worst?.rawValue, "findings": findings.map(\.json), "app": status.app?.description,
            "follow": status.follow.rawValue, "installed": status.current.map { Generation.version(of: $0.name) },
            "generation": status.current?.name, "since": status.since?.description,
            "created": status.created?.description, "expires": status.expires?.description,
            "hold": status.holds.holdToShow?.json, "holds": status.holds.json, "feed": status.feed,
            "known": status.known?.json,
            "keyList": status.keyList.map { JSON.record(["name": $0.name, "expires": $0.expires?.description]) },
            "trusted": status.keys.map(\.all),
            "revoked": status.revoked.map { JSON.record(["version": $0.version.description, "signers": $0.signers]) },
            "trustedKeys": status.trustedKeys.unlessEmpty, "unfinished": status.unfinished.updates,
            "workers": status.unfinished.workers.map(\.pid), "databases": status.databases.map { $0.json(completing) },
            "generations": status.generations.map(\.json), "uncarried": status.uncarried.map(\.json).unlessEmpty,
            "consumers": status.consumers.map { consumer in
                JSON.record(["name": consumer.name, "by": consumer.by, "databases": consumer.databases])
            }, "laggards": status.laggards.map(\.json), "guard": status.protection, "attempt": status.attempt?.json,
            "last": status.last?.json, "failure": status.failure?.json,
        ])
    }
}

extension KeyRoles {
    /// The keys in force, in one line: `8C01…`, or `releases 8C01…, feed 77AB…, key lists 99CD…`.
    fileprivate var summary: String {
        if release == root, timestamp == nil { return release.ids }
        return "releases \(release.ids)" + (timestamp.map { ", feed \($0.ids)" } ?? "") + ", key lists \(root.ids)"
    }
}

extension DatabaseState {
    fileprivate func json(_ completing: (Advice) -> Advice) -> JSON {
        .record([
            "name": database.name, "kind": database.kind.rawValue, "path": path, "size": size, "state": state.rawValue,
            "proof": proof, "checked": database.kind.isSealed ? nil : depth.rawValue, "since": time?.description,
            "finding": findings.first?.advising(completing).json, "notChecked": notChecked.unlessEmpty,
        ])
    }
}

extension Status.Kept {
    fileprivate var json: JSON {
        .record([
            "name": name, "version": Generation.version(of: name), "size": size, "current": isCurrent,
            "holders": holders.map { JSON.record(["pid": $0.pid, "command": $0.command]) },
        ])
    }
}

extension KnownFeed {
    fileprivate var json: JSON {
        .record([
            "serial": serial, "created": created?.description, "expires": expires.description, "expired": isExpired(),
            "available": newest?.description, "missing": choice.isMissing,
            "skipped": choice.skipped.map { JSON.record(["version": $0.version.description, "why": $0.why]) },
            "withdrawn": choice.withdrawn, "onWithdrawn": choice.onWithdrawn?.rawValue,
        ])
    }
}

extension Holders.OutdatedReader {
    /// The process, and the files that it has open.
    var json: JSON { .record(["pid": process.pid, "command": process.command, "databases": databases]) }
}

extension Laggard {
    /// The process, and the release that it reads.
    var json: JSON { .record(["pid": process.pid, "command": process.command, "generation": generation]) }
}
