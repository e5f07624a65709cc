internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultStore

/// `moult status`: what is installed, and whether it is as it should be.
enum StatusVerb {
    static let prometheus = Option("prometheus", "Print metrics for the textfile collector of Prometheus")
    static let nagios = Option("nagios", "Print one line, and end as a check of Nagios does")

    static let command = Command(
        "status", .operators, "show what is installed, what is newer, and what is kept",
        discussion: [
            """
            A sealed database is recognized by its inode, size and times, without reading it. In a store that was \
            copied, moved or restored these do not match, and the database is shown as copied and not verified: \
            moult verify reads it. Newer releases come from the feed as it was last seen: nothing \
            is asked, use moult check for that.
            """,
            """
            With --nagios it is critical if nothing is installed, a database is missing or changed, an update was \
            interrupted or could not be undone, or the publisher has withdrawn the release. It is a warning if the \
            last attempt failed, databases were copied and not verified, releases are on hold, a newer one is known \
            and not installed, the feed or the release is past the time that its publisher gave it, or, where updates wait for readers, one of them lags.
            """,
        ],
        options: [prometheus, nagios],
        examples: [
            .init("Look at the store that is here:", "moult status"),
            .init("For a program:", "moult status --json --store /var/lib/app"),
            .init(
                "For Prometheus, from a timer:",
                "moult status --prometheus > new; [ -s new ] && mv new moult-app.prom"),
            .init("For Nagios and its kin:", "moult status --nagios --store /var/lib/app"),
        ],
        exits: [
            .init(.done, "the store could be read; with --nagios: all is well"),
            .init(
                ExitCode(rawValue: 1),
                "it could not be read, and --prometheus prints moult_up 0; with --nagios: warning"),
            .init(ExitCode(rawValue: 2), "with --nagios: critical"),
            .init(ExitCode(rawValue: 3), "with --nagios: the store could not be read"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let forms = [Option.json, prometheus, nagios].filter { call.has($0) }
        guard forms.count <= 1 else {
            let names = forms.map { "--\($0.name)" }.joined(separator: " and ")
            throw call.wrongUsage("\(names) cannot both be given", why: "each is a form of its own")
        }
        if call.has(nagios) {
            let line = NagiosLine { try Status(of: call.snapshot()) }
            call.output.lines { line.write(to: &$0) }
            return ExitCode(rawValue: line.verdict.state.rawValue)
        }
        if call.has(prometheus) { return try printMetrics(call) }
        let status = try Status(of: call.snapshot())
        call.output.print(
            StatusReport(status: status, storeWords: call.storeWords, copies: try StatusReport.copies(in: status)))
        return .done
    }

    private static func printMetrics(_ call: Call) throws -> ExitCode {
        let store = try call.snapshot()
        let status: Status
        do { status = try Status(of: store) } catch {
            // A store that has metrics no more would look like one that was removed.
            call.output.lines { Metrics(store: store.layout, status: nil).write(to: &$0) }
            throw error
        }
        var metrics = Metrics(store: store.layout, status: status)
        let sets = Result { try QuarantineShelf(layout: store.layout, settings: store.settings).sets() }
        metrics.quarantine = try? sets.get()
        call.output.lines { metrics.write(to: &$0) }
        // The other metrics are printed in any case. A user who may not read the quarantine needs no more.
        if case .failure(let error) = sets, !Files.isDenied(error) { throw error }
        return .done
    }
}
