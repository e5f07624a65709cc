internal import Moult
internal import MoultBasics
internal import MoultFiles

/// `moult watch`: reports each release when it is installed, and can run a program each time.
enum WatchVerb {
    static let exec = Option("exec", "Run CMD for each release")
    static let once = Option("once", "Exit after the first release")
    static let since = Option(
        "since", value: .text("GENERATION"),
        "Report releases installed after this generation (default: the current one)")
    static let rows = Option("rows", "Report the keys of the changed rows")
    static let limit = Option(
        "limit", value: .number(in: 1...1_000_000),
        "With --rows: report no keys of a table with more changed rows (default: 10000)")
    static let program = Argument(
        .text("CMD"), presence: .repeated, "The program and its arguments, after -- if they include options")

    static let command = Command(
        "watch", .operators, "report each release when it is installed",
        discussion: [
            """
            The command waits for notifications from the kernel and does not poll. It prints a line for each release; \
            several releases in quick succession may be reported as one.
            """,
            """
            The program runs without a shell. Its environment has MOULT_STORE, MOULT_GENERATION, MOULT_VERSION and \
            MOULT_CHANGED, the names of the changed databases separated by spaces.
            """,
            """
            With --rows, the command compares each changed read-only database with that of the previous release, row by row, \
            and reports what the last update changed in shared databases; updates record that from the first use of --rows on. With --json, a release has the keys of the rows that \
            were inserted, updated and deleted. Where they are not known, as for a virtual table, it says why the table must be \
            read again.
            """,
        ], arguments: [program], options: [exec, once, since, rows, limit],
        rules: [.needs(limit, rows, why: "without --rows, no rows are reported")],
        examples: [
            "Print releases as they are installed:": "moult watch",
            "Reload a server after each release:": "moult watch --exec -- systemctl reload api",
            "Print the keys of the changed rows:": "moult watch --rows --json",
            "Wait for the next release in a script:": "moult watch --once && ./rebuild-index",
        ],
        exits: [
            .done: "with --once: a release was installed, and the program, if any, succeeded",
            .failure(.failed): "no store was found, or with --once: the program failed",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let words = call.values(program)
        guard call.has(exec) == !words.isEmpty else {
            throw call.wrongUsage(
                "--exec and CMD must be given together", why: call.has(exec) ? "CMD is missing" : "--exec is missing")
        }
        let layout = try StoreLayout(root: call.store())
        if let name = call.value(since), !Generation.isName(name) {
            throw call.wrongUsage(
                "--since needs the name of a generation, not \"\(name)\"",
                why: "the name is a version, a plus sign and eight hexadecimal digits, as shown by `moult status`")
        }
        if call.has(rows) { ChangeRecord.want(layout) }
        let follower = try Follower(layout, since: call.value(since).map { try .init(reading: $0, layout) })
        while let change = try follower.next() {
            let changed =
                call.has(rows)
                ? try change.rows(layout, limit: call.number(limit) ?? DatabaseChanges.standardLimit) : nil
            report(change, changed, call.output)
            if !words.isEmpty {
                do { try execute(words, change, layout, call.output) } catch {
                    if call.has(once) { throw error }
                    call.output.warn("\(error)")
                }
            }
            if call.has(once) { break }
        }
        return .done
    }

    private static func report(_ change: Follower.Change, _ rows: [DatabaseChanges]?, _ output: Output) {
        if output.format == .json {
            let keys = rows.map { $0.map(\.json) }
            output.event(
                "generation",
                [
                    "generation": change.generation, "version": change.version, "previous": change.previous,
                    "databases": change.databases, "changes": keys,
                ])
        } else {
            output.lines { page in
                let before = change.previous.map { ", was \($0)" } ?? ""
                page.line("\(change.generation, .heading)\(before): \(change.databases.joined(separator: " "))")
                for database in rows ?? [] { page.line("  \("\(RowChanges(database))")") }
            }
        }
    }

    private static func execute(
        _ words: [String], _ change: Follower.Change, _ layout: StoreLayout, _ output: Output
    ) throws {
        let ended = try Subprocess.run(
            words,
            environment: [
                "MOULT_STORE": layout.root, "MOULT_GENERATION": change.generation, "MOULT_VERSION": change.version,
                "MOULT_CHANGED": change.databases.joined(separator: " "),
            ])
        // With JSON, stdout is for events only.
        let said = String(decoding: ended.output, as: UTF8.self)
        if output.format == .json { output.console.diagnose(said) } else { output.console.write(said) }
        output.flush()
        guard ended.succeeded else {
            throw MoultError(.system, what: "\(words[0]) failed for \(change.generation)", why: ended.complaint)
        }
        output.console.diagnose(String(decoding: ended.errors, as: UTF8.self))
    }
}
