internal import Moult
internal import MoultBasics
internal import MoultFiles

/// `moult status`: shows the installed release, and whether it is healthy.
enum StatusVerb {
    static let file = Argument(
        .file(), presence: .optional, "A file that `moult replace` has replaced, instead of a store")
    static let prometheus = Option("prometheus", "Print metrics for the Prometheus node exporter")
    static let output = Option(
        "output", letter: "o", value: .file(),
        "With --prometheus: write the metrics to a file, which readers see as a whole")
    static let check = Option(
        "check", "Exit with 1 if a finding is a warning, and with 2 if one is critical, as a Nagios check does")
    static let nagios = Option("nagios", "Print one line for Nagios, and exit with the status of a Nagios check")

    static let command = Command(
        "status", .operators, "show the installed, newer and kept releases",
        discussion: [
            """
            The command does not read whole database files: it recognizes a read-only database by inode, size and \
            times. Copying or restoring a store changes the inodes, and the database is shown as copied \
            and not verified until its release is applied again (moult apply). Newer releases come from the last known \
            feed. To read the feed now, run: moult check
            """,
            """
            With --nagios, the state is critical if nothing is installed, a database is missing, damaged or changed, an \
            update was interrupted or ended with exit status 6, the installed release was withdrawn or only revoked keys have signed it, or the hold \
            record cannot be read, attempts to update have failed for a day, or the feed was not asked for three of the \
            intervals in "monitoring" of moult.json. It is a warning if the last attempt failed, a consumer did not reload, \
            the file system of the store is full or read-only, the key list under which the release was installed is \
            missing, a database is not verified or cannot be \
            read, the history cannot be read, a release is on hold, a newer release is not installed, the feed or the \
            installed release has expired, the key list expires within 60 days, rows of the app that an update did not \
            carry over are in quarantine (until you remove them: moult quarantine --remove) or, with "waitForReaders" in \
            moult.json, a reader still uses an older release.
            """,
        ],
        arguments: [file], options: [prometheus, output, nagios, check],
        examples: [
            .init("Check the store in this directory:", "moult status"),
            .init("Print the status as JSON:", "moult status --json --store /var/lib/app"),
            .init(
                "Write metrics for Prometheus:",
                "moult status --prometheus --output /var/lib/node-exporter/moult-app.prom"),
            .init("Run the command as a Nagios check:", "moult status --nagios --store /var/lib/app"),
        ],
        exits: [
            .init(.done, "the store could be read; with --nagios or --check: ok"),
            .init(
                ExitCode(rawValue: 1),
                "the store could not be read; with --nagios or --check: warning"),
            .init(ExitCode(rawValue: 2), "with --nagios or --check: critical"),
            .init(ExitCode(rawValue: 3), "with --nagios: the store could not be read"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        if let word = call.value(file) {
            guard let file = try call.replacedFile(word) else { throw try call.notReplaced(word) }
            try call.refuse([prometheus, output, nagios, check], with: file)
            try show(file, call)
            return .done
        }
        let forms = [Option.json, prometheus, nagios].filter { call.has($0) }
        guard forms.count <= 1 else {
            let names = forms.map { "--\($0.name)" }.joined(separator: " and ")
            throw call.wrongUsage("\(names) cannot be used together", why: "each selects an output format")
        }
        if call.has(nagios) {
            let line = NagiosLine { try Status(of: call.snapshot()) }
            call.output.lines { line.write(to: &$0) }
            return ExitCode(rawValue: line.state.rawValue)
        }
        if call.has(prometheus) { return try printMetrics(call) }
        if call.has(output) {
            throw call.wrongUsage("--output needs --prometheus", why: "only metrics are written to a file")
        }
        let status = try Status(of: call.snapshot())
        call.output.print(StatusReport(status: status, storeWords: call.storeWords, completing: call.output.completing))
        return call.has(check) ? ExitCode(rawValue: NagiosLine.State(status.findings()).rawValue) : .done
    }

    private static func printMetrics(_ call: Call) throws -> ExitCode {
        let (store, status): (StoreSnapshot, Status)
        do {
            store = try call.snapshot()
            status = try Status(of: store)
        } catch {
            // Without any metric, the store would look as if it had been removed.
            try deliver(Metrics(store: StoreLayout(root: call.namedStore()), status: nil), call)
            throw error
        }
        var metrics = Metrics(store: store.layout, status: status)
        let sets = Result { try QuarantineShelf(layout: store.layout, settings: store.settings).sets() }
        // The other metrics are delivered in any case; the error follows.
        metrics.quarantine = try? sets.get()
        try deliver(metrics, call)
        // A user who may not read the quarantine does not need its metrics.
        if case .failure(let error) = sets, !Files.isDenied(error) { throw error }
        return .done
    }

    private static func deliver(_ metrics: Metrics, _ call: Call) throws {
        guard let file = call.value(output) else { return call.output.lines { metrics.write(to: &$0) } }
        var page = Page(for: Terminal())
        metrics.write(to: &page)
        // The exporter runs as another user.
        try OutputFile.write(Array(page.text.utf8), to: file, mode: 0o644)
    }
}
