internal import MoultBasics
internal import MoultStore

/// `moult verify`: whether a store is what its records say.
enum VerifyVerb {
    static let names = Argument(
        .ofStore("NAME", .databases), presence: .repeated, "Only these databases; else all of them")
    static let deep = Option("deep", "Read every page: digests of sealed databases, and SQLite's integrity_check")

    static let command = Command(
        "verify", .operators, "check that what is installed is what was proven",
        discussion: [
            """
            For each sealed database: its path leads to the generation in service (path), it is the file that was \
            verified when it was installed (seal), and no file beside it changes what is read \
            (sidecars). A file is recognized by inode, size and times; in a store that was copied, moved or restored \
            these do not match, and the file is read to compare its digest. A database that apps write to must be \
            there (path), have the schema and the content of the release, and pass SQLite's quick_check. Nothing is \
            changed or repaired: apply the release again to replace what is damaged, and begin a writable database \
            replaced by an empty one with "moult reset".
            """
        ],
        arguments: [names], options: [deep, UpdateOptions.checkTimeout],
        examples: [
            .init("Check what is installed:", "moult verify"), .init("Read everything:", "moult verify --deep"),
            .init("One database:", "moult verify diary"),
        ],
        exits: [
            .init(.done, "everything is sound"),
            .init(.failure(.failed), "something is not, or this user may not read it"),
            .init(.failure(.busy), "a database is locked, and nothing wrong was found in the others"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let store = try call.snapshot()
        let settings = try store.settings
        let report = VerifyReport(
            checks: try Verifier(store, checkTimeout: call.number(UpdateOptions.checkTimeout)).verify(
                call.values(names), deep: call.has(deep)),
            storeWords: call.storeWords, hasFeed: settings.feed != nil)
        call.output.print(report)
        if report.isSound { return .done }
        return .failure(report.findings == 0 && report.unread.allSatisfy(\.isLocked) ? .busy : .failed)
    }
}

private struct VerifyReport: Report {
    let checks: [Verifier.Check]
    let storeWords: [String]
    let hasFeed: Bool

    var findings: Int { checks.count { $0.finding != nil } }
    var unread: [Verifier.Check] { checks.filter(\.isUnread) }
    var isSound: Bool { findings == 0 && unread.isEmpty }

    func write(to page: inout Page) {
        var table = Table(.left(gap: 1), .left, .left, .left)
        for check in checks {
            table.row(
                check.isUnread
                    ? "\(page.terminal.symbols.dot, .dim)"
                    : check.finding == nil
                        ? "\(page.terminal.symbols.tick, .good)" : "\(page.terminal.symbols.cross, .bad)",
                "\(check.subject)", "\(check.method)", "\(words(check))")
            for why in check.isUnread ? [] : check.notChecked { table.row("\(" ")", "", "", "not checked: \(why)") }
        }
        page.table(table)
        page.line()
        let counts = [
            findings == 0 ? nil : "\(findings) found something wrong",
            unread.isEmpty ? nil : "\(unread.count) could not be done",
        ].compactMap(\.self)
        page.line(
            isSound
                ? "\("\(counted(checks.count, "check")): all sound", .good)"
                : "\("\(counted(checks.count, "check")): \(counts.joined(separator: ", "))", .bad)")
        var said: [[String]] = []
        for remedy in checks.compactMap(\.remedy) where !said.contains(remedy) {
            said.append(remedy)
            let words = remedy == ["moult", "apply"] && !hasFeed ? remedy + ["RELEASE"] : remedy
            let all = words[0] == "moult" ? words + storeWords : words
            let verb = remedy[0] == "chmod" ? "to let this user read it" : "repair it with"
            page.line("\(verb): \(shellLine(all), .heading)")
        }
    }

    private func words(_ check: Verifier.Check) -> String {
        if check.isUnread { return "not checked: \(check.notChecked.joined(separator: "; "))" }
        return check.finding ?? check.note ?? (check.notChecked.isEmpty ? "sound" : "opens")
    }

    var json: JSON { ["sound": .bool(isSound), "checks": .array(checks.map(\.json))] }
}
