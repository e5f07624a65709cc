internal import Moult
internal import MoultBasics

/// `moult hold`: blocks releases.
enum HoldVerb {
    static let version = Argument(
        .ofStore("VERSION", .releases), presence: .repeated,
        "A version, or a range such as '>=2.1 <3' (default: every release)")
    static let reason = Option(
        "reason", value: .text("TEXT"), required: "the reason is shown to other operators",
        "The reason, shown with the hold")

    static let command = Command(
        "hold", .operators, "block releases, or all updates",
        discussion: [
            """
            A release on hold is installed neither from a feed nor from its manifest, and a rollback skips it. The \
            installed release stays. A range includes the pre-releases within its bounds. A new hold replaces only a \
            hold on the same VERSION.
            """
        ], arguments: [version], options: [reason, UpdateOptions.wait], changesStore: true,
        examples: [
            "Block a bad release:": "moult hold 2.1.0 --reason 'names are missing'",
            "Block two releases, and all from 4.0 on:": "moult hold 2.1.0 2.1.1 '>=4' --reason 'not tested'",
            "Block all updates over the holidays:": "moult hold --reason holidays",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let why = try call.required(reason)
        let releases = call.values(version).isEmpty ? [Hold.everything] : call.values(version)
        if let wrong = releases.first(where: { !Hold.isRelease($0) }) {
            throw call.wrongUsage(
                "VERSION must be a version such as 2.1.0 or a range such as '>=2.1 <3', not \"\(wrong)\"")
        }
        let holds = releases.map { Hold(release: $0, reason: why, since: .now) }
        let change = try call.orchestrator(call.watcher()).hold(holds, wait: call.wait)
        let json = JSON.record([
            "hold": holds.first?.json, "before": change.removed.first?.json, "holds": change.holds.json,
        ])
        call.output.print(json: json) { page in
            page.holds(change.holds, holds)
            for before in change.removed where !holds.contains(where: { $0.reason == before.reason }) {
                page.wrapped("this replaces an earlier hold: \(before.sentence)")
            }
        }
        return .done
    }
}
