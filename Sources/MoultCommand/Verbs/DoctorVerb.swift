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
        let findings = try Doctor.custody(of: layout) ?? Doctor(StoreSnapshot(layout)).examine()
        let isSound = findings.allSatisfy(\.isAdvice)
        call.output.print(DoctorReport(root: layout.root, findings: findings), evenIfQuiet: !isSound)
        return isSound ? .done : .failure(.failed)
    }
}

private struct DoctorReport: Report {
    let root: String
    let findings: [Doctor.Finding]

    func write(to page: inout Page) {
        for finding in findings {
            let word: StyledText = finding.isAdvice ? "\("advice:", .warning)" : "\("found:", .bad)"
            page.paragraph("\(word) \(finding.path): \(finding.what)")
            page.paragraph("\(finding.why)", indent: 2)
            page.line("  fix: \(finding.fix, .heading)")
        }
        if findings.allSatisfy(\.isAdvice) { page.line("\(root): \("sound", .good)") }
    }

    var json: JSON {
        [
            "store": .string(root), "sound": .bool(findings.allSatisfy(\.isAdvice)),
            "findings": .array(
                findings.map {
                    [
                        "kind": .string($0.kind), "path": .string($0.path), "what": .string($0.what),
                        "why": .string($0.why), "mend": .string($0.fix), "advice": .bool($0.isAdvice),
                    ]
                }),
        ]
    }
}
