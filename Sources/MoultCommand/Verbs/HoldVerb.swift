internal import MoultBasics
internal import MoultCore
internal import StepKit

/// `moult hold`: keeps a release, or all of them, out.
enum HoldVerb {
    static let version = Argument(
        .text("VERSION"), presence: .optional, "The release that must not be installed; else every release")
    static let reason = Option("reason", value: .text("TEXT"), "Why; whoever is refused will read it")

    static let command = Command(
        "hold", .operators, "keep a release out, or all of them",
        discussion: [
            """
            A store has one hold; a new one takes the place of the old. What is installed stays, and a rollback is \
            still possible.
            """
        ],
        arguments: [version], options: [reason, UpdateOptions.wait], changesStore: true,
        examples: [
            .init("Keep a bad release out:", "moult hold 2.1.0 --reason 'names are missing'"),
            .init("Stay as it is over the holidays:", "moult hold --reason holidays"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        guard let why = call.value(reason) else {
            throw call.wrongUsage("hold needs --reason TEXT", why: "whoever finds the store on hold must know why")
        }
        let release = call.value(version) ?? "*"
        guard release == "*" || Version(release) != nil else {
            throw call.wrongUsage("VERSION is a version such as 2.1.0, not \"\(release)\"")
        }
        let hold = Settings.Hold(release: release, reason: why, since: .now)
        let before = try call.orchestrator(call.settledWatcher).hold(hold, wait: call.wait)
        call.output.print(HoldReport(hold: hold, before: before, storeWords: call.storeWords))
        return .done
    }
}

private struct HoldReport: Report {
    let hold: Settings.Hold
    let before: Settings.Hold?
    let storeWords: [String]

    func write(to page: inout Page) {
        page.hold(hold, storeWords: storeWords)
        if let before, before.release != hold.release { page.wrapped("the hold before is over: \(before.sentence)") }
    }

    var json: JSON { .compact(["hold": hold.json, "before": before?.json]) }
}
