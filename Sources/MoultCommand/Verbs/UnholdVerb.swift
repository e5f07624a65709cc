internal import MoultBasics
internal import MoultCore

/// `moult unhold`: lets in again what was on hold.
enum UnholdVerb {
    static let command = Command(
        "unhold", .operators, "let in again what is on hold", options: [UpdateOptions.wait], changesStore: true,
        examples: [.init("Let it in again:", "moult unhold")], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        call.output.print(UnholdReport(before: try call.orchestrator(call.settledWatcher).hold(nil, wait: call.wait)))
        return .done
    }
}

private struct UnholdReport: Report {
    let before: Settings.Hold?

    func write(to page: inout Page) {
        guard let before else { return page.line("nothing to do: nothing is on hold") }
        page.line(before.release == "*" ? "releases are let in again" : "\(before.release) is let in again")
    }

    var json: JSON { .compact(["before": before?.json]) }
}
