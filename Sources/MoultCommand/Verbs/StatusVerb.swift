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

    static let deep = Option(
        "deep",
        "Look for problems that could damage the databases, and print only these, with their fixes: journals left behind, "
            + "foreign files, hard links, file systems without reliable locks, unfinished updates, files that every user may "
            + "write to. To check the data, run: moult verify")
    static let processes = Option(
        "processes",
        "Print only the processes that use databases, generations or locks; to see the leases and open files of other users, "
            + "run it as root")

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
        ], arguments: [file], options: [deep, processes, check, nagios, prometheus, output],
        rules: [[.json, prometheus, nagios], [deep, processes, prometheus, nagios], [deep, processes, check]].map {
            Command.Rule.one($0, why: "each selects what is printed")
        } + [.needs(output, prometheus, why: "only metrics are written to a file")],
        examples: [
            "Check the store in this directory:": "moult status",
            "Print the status as JSON:": "moult status --json --store /var/lib/app",
            "Look for problems in the store and around it:": "moult status --deep",
            "Show the processes that use the store:": "sudo moult status --processes",
            "Write metrics for Prometheus:": "moult status --prometheus --output /var/lib/node-exporter/moult-app.prom",
            "Run the command as a Nagios check:": "moult status --nagios --store /var/lib/app",
        ],
        exits: [
            .done:
                "the store could be read; with --deep: no problem found, apart from advice; with --nagios or --check: ok",
            ExitCode(rawValue: 1):
                "the store could not be read; with --deep: a problem was found; with --nagios or --check: warning",
            ExitCode(rawValue: 2): "with --nagios or --check: critical",
            ExitCode(rawValue: 3): "with --nagios: the store could not be read",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        if let word = call.value(file) {
            guard let file = try call.replacedFile(word) else { throw try call.notReplaced(word) }
            try call.refuse([deep, processes, prometheus, output, nagios, check], with: file)
            try show(file, call)
            return .done
        }
        if call.has(deep) {
            let report = try DeepReport(of: StoreLayout(root: call.namedStore()), completing: call.output.completed)
            call.output.print(report, evenIfQuiet: !report.isSound)
            return report.isSound ? .done : .failure(.failed)
        }
        if call.has(nagios) {
            let line = NagiosLine { try Status(of: call.snapshot()) }
            call.output.lines { line.write(to: &$0) }
            return ExitCode(rawValue: line.state.rawValue)
        }
        if call.has(prometheus) { return try printMetrics(call) }
        let store = try call.snapshot()
        if call.has(processes) {
            // Throws if the store is missing.
            _ = try store.settings
            try call.reportUnfinished()
            call.output.print(ProcessesReport(root: store.layout.root, holders: try Holders(of: store)))
            return .done
        }
        let status = try Status(of: store)
        call.output.print(StatusReport(status: status, completing: call.output.completed))
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
