internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// The output of `moult status` for humans.
struct StatusReport: Report {
    let status: Status
    let storeWords: [String]

    func write(to page: inout Page) {
        page.line("\(status.product + version, .heading)")
        page.table(facts(page.terminal))
        unfinished(&page)
        page.holds(status.holds, storeWords: storeWords)
        news(&page)
        for sentence in status.uncarriedRows { page.wrapped(StyledText(sentence, .warning)) }
        if !status.uncarried.isEmpty { page.line("see them with: \(command("quarantine"), .heading)") }
        if let fault = status.quarantineFault {
            page.wrapped(StyledText("\(fault.what): \(fault.why ?? "")", .warning))
            if let advice = fault.now { page.wrapped(StyledText(advice)) }
        }
        for laggard in status.laggards { page.wrapped(StyledText(laggard.text, .warning)) }
        if !status.databases.isEmpty {
            page.heading("Databases")
            page.table(databases(page.terminal))
            for line in remedies { page.line(line) }
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

    private func facts(_ terminal: Terminal) -> Table {
        var table = Table(.left, .left, indent: 2)
        table.row("store", "\(status.root)")
        table.row("follows", "\(status.follow.rawValue)\(status.app.map { ", app \($0)" } ?? "")")
        if let feed = status.feed { table.row("feed", "\(feed)") }
        if let known = status.known {
            let made = known.created.map { " of \($0.text(for: terminal))" } ?? ""
            table.row("known", "serial \(known.serial)\(made), valid until \(known.expires.text(for: terminal))")
        }
        table.row("trusts", "\(status.keys?.summary ?? "no key, so signatures are not checked")")
        if let list = status.keyList {
            let until = list.expires.map { ", valid until \($0.text(for: terminal))" } ?? ""
            table.row("keys", "\(list.name)\(until)")
        }
        if let since = status.since { table.row("since", "\(since.text(for: terminal))") }
        if let created = status.created { table.row("created", "\(created.text(for: terminal))") }
        if let expires = status.expires { table.row("expires", "\(expires.text(for: terminal))") }
        table.row("guard", "\(status.protection)")
        if let last = status.last { table.row("last", attempt(last, terminal)) }
        if let failure = status.failure {
            if failure != status.last { table.row("failed", attempt(failure, terminal)) }
            if let remedy = failure.remedy { table.row("remedy", "\(remedy)") }
        }
        return table
    }

    func attempt(_ entry: History.Entry, _ terminal: Terminal) -> StyledText {
        let reason = entry.reason.map { ": \($0)" } ?? ""
        return "\(entry.sentence, entry.outcome.style), \(entry.time.text(for: terminal))\(reason)"
    }

    func unfinished(_ page: inout Page) {
        if let fault = status.historyFault {
            page.wrapped("\("\(fault.what): \(fault.why ?? "")", .warning)")
            page.line("repair the history with: \(command("recover"), .heading)")
        }
        for sentence in status.unfinished.sentences { page.wrapped("\(sentence, .warning)") }
        if !status.unfinished.isEmpty, status.unfinished.workers.isEmpty {
            page.line("finish it with: \(command("recover"), .heading)")
        }
    }

    /// Prints the feed's releases, as of the last request.
    private func news(_ page: inout Page) {
        guard let known = status.known else {
            if status.current == nil {
                page.line(
                    "install a release with: \(command("apply", status.feed == nil ? "RELEASE" : nil), .heading)")
            }
            return
        }
        if let reason = known.choice.withdrawn {
            page.wrapped(StyledText("the installed release was withdrawn by its publisher: \(reason)", .warning))
            if known.newest == nil || known.choice.isMissing, status.canRollBack {
                page.line("go back with: \(command("rollback"), .heading)")
            }
        }
        // Holds are printed above.
        for skipped in known.choice.skipped where !status.holds.names(skipped.version) {
            page.wrapped("\("=", .dim) \("\(skipped.version)") is skipped: \(skipped.why)")
        }
        if known.choice.isMissing {
            page.line(
                "\(known.choice.unreadable, .warning); check the feed with: \(command("check"), .heading)")
        } else if let newest = known.newest {
            page.line(
                "\("\(newest)", .heading) is available and not installed; install it with: \(command("apply"), .heading)"
            )
        }
        if known.isExpired() {
            page.wrapped(
                StyledText("the last known feed has expired, and an attacker may be withholding newer ones", .warning))
            page.line("check for a newer one with: \(command("check"), .heading)")
        }
    }

    func command(_ verb: String, _ argument: String? = nil) -> String {
        shellLine(["moult", verb] + (argument.map { [$0] } ?? []) + storeWords)
    }

    private func databases(_ terminal: Terminal) -> Table {
        var table = Table(.left(gap: 1), .left, .left, .right, .left, indent: 2)
        for file in status.databases {
            table.row(
                mark(file, terminal), "\(file.name)", "\(file.kind.rawValue)",
                "\(file.size.map { "\(ByteCount($0))" } ?? "-")",
                "\(words(file, terminal))\((file.note ?? file.proof).map { ": \($0)" } ?? "")")
            for why in file.finding?.notChecked ?? [] { table.row(" ", "", "", "", "not checked: \(why)") }
        }
        return table
    }

    /// One line for each command that repairs something.
    var remedies: [StyledText] {
        let faulty = status.databases.filter { $0.state.isFault }
        let applied = faulty.filter { $0.remedy == ["moult", "apply"] }.map(\.name)
        var lines: [StyledText] = []
        if !applied.isEmpty {
            let words = command("apply", status.feed == nil ? "RELEASE" : nil)
            lines.append("repair \(applied.joined(separator: ", ")) with: \(words, .heading)")
        }
        for file in faulty {
            guard let remedy = file.remedy, remedy != ["moult", "apply"] else { continue }
            if remedy[0] != "moult" || file.kind.isDisposable {
                let words = Assessment.Remedy.complete(remedy, store: storeWords)
                lines.append("repair \(file.name) with: \(shellLine(words), .heading)")
                continue
            }
            let first = file.state == .missing ? "restore \(file.name), or" : "set \(file.name) aside and"
            lines.append("\(first) start with \(file.kind.freshContent): \(shellLine(remedy + storeWords), .heading)")
        }
        for refusal in status.databases.compactMap({ $0.finding?.refusal }) {
            if let now = refusal.now { lines.append("\(now)") }
        }
        for file in status.databases where file.finding?.depth == .nothing {
            guard let permit = file.remedy else { continue }
            let first = permit[0] == "mv" ? "to make \(file.name) readable" : "to let this user read \(file.name)"
            lines.append("\(first): \(shellLine(permit), .heading)")
        }
        return lines
    }

    /// Returns the mark to print in front of a file. A tick marks only files that were read and have not changed since.
    private func mark(_ file: Status.File, _ terminal: Terminal) -> StyledText {
        if file.state.isFault || file.state == .blocked { return "\(terminal.symbols.cross, .bad)" }
        let known = file.finding?.depth
        if file.state == .unverified || known == .glance || known == .nothing { return "\(terminal.symbols.dot, .dim)" }
        return "\(terminal.symbols.tick, .good)"
    }

    func words(_ file: Status.File, _ terminal: Terminal) -> StyledText {
        guard file.state == .living, let finding = file.finding else { return "\(file.state.words)" }
        if !finding.notChecked.isEmpty { return "exists" }
        guard finding.depth != .glance, let time = finding.time else {
            return "opens, schema matches; to check its pages: \(command("verify", file.name))"
        }
        return "sound on \(time.text(for: terminal)), unchanged since"
    }

    private var generations: Table {
        var table = Table(.left, .right, .left, indent: 2)
        for generation in status.generations.reversed() {
            let holders = generation.holders.map(\.description).joined(separator: ", ")
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
}

extension Status.File.State {
    var isFault: Bool { self == .missing || self == .changed || self == .damaged }

    fileprivate var words: String {
        switch self {
        case .sound: "read-only, verified"
        case .living: "writable, not checked"
        case .missing: "missing"
        case .changed: "changed"
        case .damaged: "needs repair"
        case .blocked: "cannot be updated"
        case .unverified: "copied; not verified"
        }
    }
}

extension KeyRoles {
    /// The keys in force, in one line: `8C01…`, or `releases 8C01…, feed 77AB…, key lists 99CD…`.
    fileprivate var summary: String {
        if release == root, timestamp == nil { return release.ids }
        return "releases \(release.ids)" + (timestamp.map { ", feed \($0.ids)" } ?? "") + ", key lists \(root.ids)"
    }
}
