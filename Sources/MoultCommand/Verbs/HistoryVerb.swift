internal import Moult
internal import MoultBasics
internal import MoultPublish

/// `moult history`: shows the operations on a store.
enum HistoryVerb {
    static let number = Option(
        "number", letter: "n", value: .number(in: 1...1_000_000), "The number of entries to show (default 20)")
    static let html = Option(
        "html", value: .file(), "Also write an HTML page to FILE that shows how long each part took")

    static let command = Command(
        "history", .operators, "show the history of a store, newest first",
        discussion: [
            """
            With --verbose or --json, each entry shows how long the parts of the update took: the steps of both \
            passes (moult help steps), and in addition unpack (the bundle), seal (make the files read-only), \
            consumers (wait until they close databases), decide (record the decision) and finish.
            """
        ], options: [number, html],
        examples: [
            "Show the last updates:": "moult history",
            "Print the complete history as JSON:": "moult history --json -n 1000000",
            "Show how long each part took:": "moult history --html history.html",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let layout = try call.layout()
        // Without this, a directory that is not a store would appear to have an empty history.
        let settings = try Settings.read(layout)
        try call.reportUnfinished()
        let reader = try HistoryReader(layout)
        var left = call.number(number) ?? 20
        func next() throws -> [History.Entry] {
            var batch: [History.Entry] = []
            while batch.count < Self.batch, left > 0, let entry = try reader.next() {
                batch.append(entry)
                left -= 1
            }
            return batch
        }
        var gathered: [History.Entry]?
        if let page = call.value(html) {
            var all: [History.Entry] = []
            while case let batch = try next(), !batch.isEmpty { all += batch }
            let history = HistoryPage(product: settings.product, store: layout.root, entries: all)
            try call.save(Array(history.html.utf8), asPage: page)
            gathered = all
        }
        let details = call.output.isVerbose
        try call.output.list("entries") {
            guard let all = gathered else { return try next() }
            gathered = []
            return all
        } json: {
            $0.json
        } rest: {
            ["torn": reader.torn]
        } write: {
            write($0, details: details, to: &$1)
        }
        if reader.torn > 0, call.output.format == .text {
            call.output.flush()
            let torn = reader.torn
            call.output.warn(
                "\(counted(torn, "line")) of \(layout.history) cannot be read; a crash may have truncated \(torn == 1 ? "it" : "them"). Repair the history with: \(moult: "recover")"
            )
        }
        return .done
    }

    /// The number of entries in memory at a time, unless a page draws all of them.
    private static let batch = 500

    private static func write(_ entries: [History.Entry], details: Bool, to page: inout Page) {
        if entries.isEmpty { page.line("this store has no history yet") }
        // All times have the same width, so that all batches line up.
        var table = Table(.left, .left)
        for entry in entries {
            let reason = entry.reason.map { ": \($0)" } ?? ""
            table.row(
                "\(page.terminal.isTerminal ? entry.time.local : entry.time.description)",
                "\(entry.sentence, entry.outcome.style)\(reason)")
            for line in entry.rowLines { table.row("", "\(line)") }
            if details {
                for line in entry.partLines { table.row("", "\(line, .dim)") }
                if let remedy = entry.remedy { table.row("", "\(remedy)") }
            }
        }
        page.table(table)
    }
}
