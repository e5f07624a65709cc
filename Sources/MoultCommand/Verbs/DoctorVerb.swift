internal import Moult
internal import MoultBasics

/// `moult doctor`: finds problems that could damage a store, and shows how to fix them.
enum DoctorVerb {
    static let command = Command(
        "doctor", .operators, "look for problems that could damage the databases",
        discussion: [
            """
            The command checks the environment of the databases: journals left behind, foreign files next to read-only \
            databases, hard links, file systems without reliable locks, unfinished updates, broken links, and files \
            that every user may write to. To check the data, run: moult verify
            """,
            """
            Each finding comes with a fix; the command itself changes nothing. Advice does not change the exit status.
            """,
        ],
        examples: [
            .init("Check the store in this directory:", "moult doctor"),
            .init("As a monitoring check:", "moult doctor -q --store /var/lib/app"),
        ],
        exits: [
            .init(.done, "no problem found, apart from advice"),
            .init(.failure(.failed), "a problem was found"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let layout = try StoreLayout(root: call.namedStore())
        let findings = try (Doctor.custody(of: layout) ?? Doctor(StoreSnapshot(layout)).examine())
            .map { $0.advising(call.output.completing) }
        let report = DoctorReport(root: layout.root, findings: findings)
        call.output.print(report, evenIfQuiet: !report.isSound)
        return report.isSound ? .done : .failure(.failed)
    }
}

private struct DoctorReport: Report {
    let root: String
    let findings: [Finding]
    var isSound: Bool { findings.allSatisfy { $0.severity == .note } }

    func write(to page: inout Page) {
        for finding in findings {
            let word: StyledText = finding.severity == .note ? "\("advice:", .warning)" : "\("found:", .bad)"
            page.wrapped("\(word) \(finding.description)")
            if let why = finding.why { page.wrapped("\(why)", indent: 2) }
            if let advice = finding.advice { page.line("  \(advice.isCommand ? "fix: " : "")\(StyledText(advice))") }
        }
        if isSound { page.line("\(root): \("sound", .good)") }
    }

    var json: JSON {
        ["store": .string(root), "sound": .bool(isSound), "findings": .array(findings.map(\.json))]
    }
}
