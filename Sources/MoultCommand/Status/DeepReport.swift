internal import Moult
internal import MoultBasics

/// The output of `moult status --deep`: problems that could damage the databases, and how to fix them.
struct DeepReport: Report {
    let root: String
    private let findings: [Finding]

    /// Examines a store that may be too damaged for its status to be read.
    init(of layout: StoreLayout, completing: (Advice) -> Advice) throws {
        root = layout.root
        findings = try (StoreEnvironment.custody(of: layout) ?? StoreEnvironment(StoreSnapshot(layout)).examine())
            .map { $0.advising(completing) }
    }

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

    var json: JSON { .record(["store": root, "sound": isSound, "findings": findings.map(\.json)]) }
}
