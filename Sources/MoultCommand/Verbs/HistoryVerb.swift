internal import MoultBasics
internal import MoultCore

/// `moult history`: what was done to a store.
enum HistoryVerb {
    static let number = Option("number", letter: "n", value: .number(in: 1...1_000_000), "Only the last N; else 20")

    static let command = Command(
        "history", .operators, "show what was done to a store, the newest first",
        options: [number],
        examples: [
            .init("See the last updates:", "moult history"),
            .init("All of it for a program:", "moult history --json -n 1000000"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let layout = try call.layout()
        // Else a directory that is no store would have an empty history.
        _ = try Settings.read(layout)
        let (entries, torn) = try History.read(layout, newest: call.number(number) ?? 20)
        call.output.print(HistoryReport(entries: entries.reversed(), torn: torn))
        if torn > 0, call.output.format == .text {
            call.output.flush()
            call.output.warn(
                "\(counted(torn, "line")) of \(layout.history) cannot be read; a crash may have torn \(torn == 1 ? "it" : "them")"
            )
        }
        return .done
    }
}

private struct HistoryReport: Report {
    let entries: [History.Entry]
    let torn: Int

    func write(to page: inout Page) {
        if entries.isEmpty { page.line("nothing was done to this store yet") }
        var table = Table(.left, .left)
        for entry in entries {
            let reason = entry.reason.map { ": \($0)" } ?? ""
            table.row(
                "\(page.terminal.isTerminal ? entry.time.local : entry.time.description)",
                "\(entry.sentence, entry.outcome.style)\(reason)")
        }
        page.table(table)
    }

    var json: JSON { ["entries": .array(entries.map(\.json)), "torn": .size(torn)] }
}

extension History.Entry {
    /// What was done and how it ended, in a few words: `update 2.0.0 -> 2.1.0 done in 1.2 s`.
    var sentence: String {
        let from = self.from.map { Generation.version(of: $0) } ?? "nothing"
        let way = self.from == to ? "" : " \(from) -> \(Generation.version(of: to))"
        return "\(action)\(way) \(ending)"
    }

    private var ending: String {
        let time = milliseconds.map { durationText(seconds: Double($0) / 1000) }
        func after(_ words: String) -> String { words + (time.map { " after \($0)" } ?? "") }
        return switch outcome {
        case .done: "done" + (time.map { " in \($0)" } ?? "")
        case .failed: after("failed")
        case .undone: after("failed and undone")
        case .stuck: after("failed, and not undone,")
        case .finished: "finished after an interruption"
        case .cleaned: "interrupted"
        }
    }
}

extension History.Entry.Outcome {
    fileprivate var style: Style? {
        switch self {
        case .done, .finished: nil
        case .failed, .undone, .cleaned: .warning
        case .stuck: .bad
        }
    }
}
