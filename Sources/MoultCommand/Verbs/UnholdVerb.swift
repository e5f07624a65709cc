internal import Moult
internal import MoultBasics

/// `moult unhold`: removes holds.
enum UnholdVerb {
    static let version = Argument(
        .ofStore("VERSION", .holds), presence: .repeated,
        "The version or range, exactly as given to `moult hold`; '*' for a hold on every release")
    static let all = Option("all", "Remove all holds")

    static let command = Command(
        "unhold", .operators, "remove a hold",
        discussion: ["Without VERSION, the command removes the only hold, and refuses if the store has several."],
        arguments: [version], options: [all, UpdateOptions.wait], changesStore: true,
        examples: ["Remove the hold on a release:": "moult unhold 2.1.0", "Remove all holds:": "moult unhold --all"],
        exits: [
            .done: "the hold was removed, or there was none",
            .failure(.refused): "another hold covers the release, or there are several holds",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let releases = call.values(version)
        if call.has(all), let first = releases.first {
            throw call.wrongUsage("--all takes no VERSION", why: "--all already includes \(first)")
        }
        let orchestrator = try call.orchestrator(call.watcher())
        let change =
            try call.has(all) ? orchestrator.unholdAll(wait: call.wait) : orchestrator.unhold(releases, wait: call.wait)
        let json = JSON.record([
            "before": change.removed.first?.json, "removed": change.removed.map(\.json), "holds": change.holds.json,
        ])
        call.output.print(json: json) { page in
            for hold in change.removed {
                page.line(
                    hold.coversEveryRelease
                        ? "the hold on every release was removed" : "the hold on \(hold.release) was removed")
            }
            for release in releases where !change.removed.contains(where: { $0.release == release }) {
                page.line("nothing to do: \(release) is not on hold")
            }
            if releases.isEmpty, change.removed.isEmpty { page.line("nothing to do: nothing is on hold") }
            page.holds(change.holds)
        }
        return .done
    }
}
