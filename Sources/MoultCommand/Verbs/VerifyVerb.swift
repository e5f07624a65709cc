internal import Moult
internal import MoultBasics

/// `moult verify`: checks a store against its records.
enum VerifyVerb {
    static let names = Argument(
        .ofStore("NAME", .databases), presence: .repeated,
        "The databases to check (default: all), or a file that `moult replace` has replaced")
    static let deep = Option(
        "deep", "Read every page: run SQLite's integrity_check, and compare digests of read-only databases")

    static let command = Command(
        "verify", .operators, "check the installed databases",
        discussion: [
            """
            For a read-only database, the command checks that its path leads to the current generation (path), that the file \
            is the one that was verified (seal), and that no file next to it changes its content (sidecars). A file \
            is recognized by inode, size and times; in a copied store inodes differ, and the file is read to compare \
            its digest. A writable database must exist (path), have the schema of the installed release, and pass \
            SQLite's quick_check.
            """,
            """
            The command changes nothing. To repair read-only databases and caches, apply the release again. To replace \
            a writable database with a new one, use `moult reset`.
            """,
        ], arguments: [names], options: [deep, UpdateOptions.checkTimeout],
        examples: [
            "Check the installed databases:": "moult verify", "Read every page:": "moult verify --deep",
            "Check one database:": "moult verify diary",
        ],
        exits: [
            .done: "no problem found", .failure(.failed): "a problem was found, or this user may not read a file",
            .failure(.busy): "a database is locked, and no problem was found in the others",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let checks: [Verifier.Check]
        if call.values(names).count == 1, let file = try call.replacedFile(call.values(names).first) {
            checks = try file.verify(deep: call.has(deep))
        } else {
            checks = try Verifier(call.snapshot(), checkTimeout: call.number(UpdateOptions.checkTimeout)).verify(
                call.values(names), deep: call.has(deep))
        }
        let report = VerifyReport(
            checks: checks.map { check in
                var check = check
                check.finding = check.finding?.advising(call.output.completed)
                return check
            })
        call.output.print(report, evenIfQuiet: !report.isSound)
        if report.isSound { return .done }
        return .failure(report.faults == 0 && report.unread.allSatisfy(\.isLocked) ? .busy : .failed)
    }

    private struct VerifyReport: Report {
        let checks: [Verifier.Check]

        var faults: Int { checks.count { $0.finding != nil && !$0.isUnread } }
        var unread: [Verifier.Check] { checks.filter(\.isUnread) }
        var isSound: Bool { faults == 0 && unread.isEmpty }

        func write(to page: inout Page) {
            var table = Table(.left(gap: 1), .left, .left, .left)
            for check in checks {
                table.row(
                    check.isUnread
                        ? "\(page.terminal.symbols.dot, .dim)" : check.finding == nil ? page.tick : page.cross,
                    "\(check.subject)", "\(check.method)", "\(words(check))")
                for why in check.isUnread ? [] : check.notChecked { table.row("\(" ")", "", "", "not checked: \(why)") }
            }
            page.table(table)
            page.line()
            let counts = [
                faults == 0 ? nil : "\(faults) found a problem",
                unread.isEmpty ? nil : "\(unread.count) could not be done",
            ].compactMap(\.self)
            page.line(
                isSound
                    ? "\("\(counted(checks.count, "check")): all sound", .good)"
                    : "\("\(counted(checks.count, "check")): \(counts.joined(separator: ", "))", .bad)")
            page.advice(of: checks.compactMap(\.finding))
        }

        private func words(_ check: Verifier.Check) -> String {
            guard let finding = check.finding else {
                return check.note ?? (check.notChecked.isEmpty ? "sound" : "opens")
            }
            return check.isUnread ? "not checked: \(finding.why ?? finding.what)" : finding.description
        }

        var json: JSON { .record(["sound": isSound, "checks": checks.map(\.json)]) }
    }
}

extension Verifier.Check {
    var json: JSON {
        .record([
            "subject": subject, "method": method, "sound": isUnread ? nil : finding == nil, "finding": finding?.json,
            "note": note, "notChecked": notChecked.unlessEmpty,
        ])
    }
}
