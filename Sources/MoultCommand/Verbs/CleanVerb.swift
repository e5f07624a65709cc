internal import MoultBasics
internal import MoultCore

/// `moult clean`: removes generations that nobody needs.
enum CleanVerb {
    static let keep = Option(
        "keep", value: .number(in: 1...1000), "How many generations stay, with the current one; else as moult.json says"
    )
    static let dryRun = Option("dry-run", letter: "n", "Show what it would do, and change nothing")

    static let command = Command(
        "clean", .operators, "remove old generations and what a crash left behind",
        discussion: [
            """
            Every update does this when it has succeeded. A generation that somebody reads from stays, and so does \
            one that is younger than a minute: readers may be about to open it. What was there before moult \
            (generation 0+adopted) is never removed.
            """
        ],
        options: [keep, dryRun, UpdateOptions.wait], changesStore: true,
        examples: [
            .init("See what would go:", "moult clean --keep 1 --dry-run"),
            .init("Keep only what is in service:", "moult clean --keep 1"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let dry = call.has(dryRun)
        let result = try call.orchestrator(call.settledWatcher).clean(
            keep: call.number(keep), dry: dry, wait: call.wait)
        call.output.print(CleanReport(collected: result.collected, dry: dry))
        return .done
    }
}

private struct CleanReport: Report {
    let collected: Collector.Report
    let dry: Bool

    func write(to page: inout Page) {
        page.collected(collected, dry: dry)
        if collected.removed.isEmpty {
            page.line("nothing to do: no generation \(collected.kept.isEmpty ? "is too many" : "can be removed")")
        } else {
            page.line("\(ByteCount(collected.freed)) \(dry ? "would be freed" : "freed")")
        }
    }

    var json: JSON {
        [
            "dryRun": .bool(dry), "removed": .array(collected.removed.map { .string($0) }),
            "kept": .array(
                collected.kept.map { ["generation": .string($0.generation), "why": .string($0.why)] }),
            "freed": .size(collected.freed),
        ]
    }
}
