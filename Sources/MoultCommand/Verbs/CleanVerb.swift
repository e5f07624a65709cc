internal import Moult
internal import MoultBasics
internal import MoultEngine
internal import MoultStore

/// `moult clean`: removes generations that are no longer needed.
enum CleanVerb {
    static let keep = Option(
        "keep", value: .number(in: 1...1000), "How many generations stay, with the current one; else as moult.json says"
    )
    static let quarantine = Option(
        "quarantine-older-than", value: .number("DAYS", in: 0...36_500),
        "Also empty the quarantine of what has been there for so many days")
    static let userData = Option(
        "including-user-data", "With --quarantine-older-than: what people wrote, too; else it stays and is listed")
    static let dryRun = Option("dry-run", letter: "n", "Show what it would do, and change nothing")

    static let command = Command(
        "clean", .operators, "remove old generations and what a crash left behind",
        discussion: [
            """
            Every update does this when it has succeeded. A generation in use stays, and so does one that was made \
            or left service within the last minute: readers may be about to open it. Files from before moult \
            (generation 0+adopted) are never removed.
            """,
            """
            Databases that were set aside stay in quarantine: broken caches until they are more than \
            "quarantineLimit" in moult.json allows, what people wrote until you remove it.
            """,
        ],
        options: [keep, quarantine, userData, dryRun, UpdateOptions.wait], changesStore: true,
        examples: [
            .init("See what would go:", "moult clean --keep 1 --dry-run"),
            .init("Keep only what is in service:", "moult clean --keep 1"),
            .init("Forget broken caches of more than a month ago:", "moult clean --quarantine-older-than 30"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let dry = call.has(dryRun)
        if call.has(userData), call.value(quarantine) == nil {
            throw call.wrongUsage("--\(userData.name) needs --\(quarantine.name)")
        }
        let result = try call.orchestrator(call.settledWatcher).clean(
            keep: call.number(keep), quarantineDays: call.number(quarantine), includingUserData: call.has(userData),
            dry: dry, wait: call.wait)
        call.output.print(CleanReport(collected: result.collected, quarantine: result.quarantine, dry: dry))
        return .done
    }
}

private struct CleanReport: Report {
    let collected: Collector.Report
    let quarantine: QuarantineShelf.Report
    let dry: Bool

    private var freed: Int { collected.freed + quarantine.removed.reduce(0) { $0 + $1.size } }

    func write(to page: inout Page) {
        page.collected(collected, dry: dry)
        for set in quarantine.removed {
            page.wrapped("\("-", .removed) \(set.directory)\(dry ? " would be removed" : " was removed")")
        }
        for (set, why) in quarantine.kept { page.wrapped("\("=", .dim) \(set.directory) stays: \(why)") }
        if collected.removed.isEmpty, quarantine.removed.isEmpty {
            page.line("nothing to do: no generation \(collected.kept.isEmpty ? "is too many" : "can be removed")")
        } else {
            page.line("\(ByteCount(freed)) \(dry ? "would be freed" : "freed")")
        }
    }

    var json: JSON {
        [
            "dryRun": .bool(dry), "removed": .array(collected.removed.map { .string($0) }),
            "kept": .array(
                collected.kept.map { ["generation": .string($0.generation), "why": .string($0.why)] }),
            "quarantine": [
                "removed": .array(quarantine.removed.map { .string($0.directory) }),
                "kept": .array(
                    quarantine.kept.map { ["set": .string($0.set.directory), "why": .string($0.why)] }),
            ],
            "freed": .size(freed),
        ]
    }
}
