internal import Moult
internal import MoultBasics

/// `moult clean`: removes generations that are no longer needed.
enum CleanVerb {
    static let keep = Option(
        "keep", value: .number(in: 1...1000),
        "Generations to keep, including the current one (default: the store's setting)")
    static let quarantine = Option(
        "quarantine-older-than", value: .number("DAYS", in: 0...36_500),
        "Also remove caches that have been in quarantine for at least this many days")
    static let userData = Option(
        "including-user-data", "With --quarantine-older-than: also remove databases with user data")

    static let command = Command(
        "clean", .operators, "remove old generations and files left behind by crashes",
        discussion: [
            """
            Every successful update also removes old generations and leftover files. moult keeps generations in use, and \
            those that were created or replaced within the last minute.
            """,
            """
            By default, this command removes nothing from quarantine. Updates remove the oldest caches there while the \
            quarantine is above its budget ("quarantine" in moult.json); user data stays until you remove it.
            """,
        ], options: [keep, quarantine, userData, UpdateOptions.dryRun, UpdateOptions.wait],
        rules: [.needs(userData, quarantine)], changesStore: true,
        examples: [
            "Show what would be removed:": "moult clean --keep 1 --dry-run",
            "Keep only the current generation:": "moult clean --keep 1",
            "Also remove caches that have been in quarantine for a month:": "moult clean --quarantine-older-than 30",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let dry = call.has(UpdateOptions.dryRun)
        let result = try call.orchestrator(call.watcher()).clean(
            keep: call.number(keep), quarantineDays: call.number(quarantine), includingUserData: call.has(userData),
            dry: dry, wait: call.wait)
        call.output.print(
            CleanReport(collected: result.collected, quarantine: result.quarantine, changed: result.kept, dry: dry))
        return .done
    }

    private struct CleanReport: Report {
        let collected: Collector.Report
        let quarantine: QuarantineShelf.Report
        /// The changed files of removed generations.
        let changed: [QuarantineShelf.Set]
        let dry: Bool

        private var freed: Int { collected.freed + quarantine.removed.reduce(0) { $0 + $1.size } }

        func write(to page: inout Page) {
            page.collected(collected, dry: dry)
            for set in changed { page.wrapped(StyledText(set.keptText([]))) }
            for set in quarantine.removed {
                page.wrapped("\("-", .removed) \(set.directory)\(dry ? " would be removed" : " was removed")")
            }
            for (set, why) in quarantine.kept { page.wrapped("\("=", .dim) \(set.directory) stays: \(why)") }
            if collected.removed.isEmpty, quarantine.removed.isEmpty {
                let why =
                    collected.kept.isEmpty
                    ? "the store has no generation beyond the limit" : "no generation can be removed"
                page.line("nothing to do: \(why)")
            } else {
                page.line("\(ByteCount(freed)) \(dry ? "would be freed" : "freed")")
            }
        }

        var json: JSON {
            .record([
                "dryRun": dry, "removed": collected.removed,
                "kept": collected.kept.map { JSON.record(["generation": $0.generation, "why": $0.why]) },
                "changed": changed.map(\.id).unlessEmpty,
                "quarantine": JSON.record([
                    "removed": quarantine.removed.map(\.directory),
                    "kept": quarantine.kept.map { JSON.record(["set": $0.set.directory, "why": $0.why]) },
                ]), "freed": freed,
            ])
        }
    }
}
