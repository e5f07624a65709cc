import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Tests the disk states that a power failure may leave at every call of an update: after recovery, every database has
/// the old or the new content. `MOULT_MODEL=all` tries every state; otherwise a sample is tried, which is the same in
/// every run.
@Suite(.tags(.thorough, .slow), .enabled(if: access("/dev/shm", W_OK) == 0, "needs a file system in memory"))
struct PowerCutTests {
    private static let isWhole = getenv("MOULT_MODEL").map { String(cString: $0) } == "all"

    @Test(arguments: Flow.allCases) func `a store recovers from every power failure`(flow: Flow) throws {
        let report = try Trial(examination: Examination(flow), most: Self.isWhole ? nil : 40).run()
        print("power cuts, \(flow.rawValue): \(report.calls) calls, \(report.possible) states, \(report.tried) tried")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
        #expect(report.tried >= 40)
    }

    /// Each of these syncs is needed: without it, the model finds a possible loss. This also shows that the model can
    /// detect problems.
    @Test(arguments: [
        (
            Flow.install, ["/.decided.json.moult-new", "/generation/food.db", "/generation", ".moult/generations", ""],
            [String]()
        ),
        (.update, [".moult"], []), (.rewrite, ["/.decided.json.moult-new", ".moult/transactions"], []),
        (.migration, ["/.decided.json.moult-new", "/0002.sql", "/unpacked/m", "user.db"], [""]),
    ])
    func `the model detects a missing sync`(flow: Flow, always: [String], last: [String]) throws {
        let examination = try Examination(flow)
        for (path, isLastOnly) in always.map({ ($0, false) }) + last.map({ ($0, true) }) {
            let trial = Trial(
                examination: examination, unsynced: { Self.ends($0, path) }, isLastOnly: isLastOnly, enough: 1)
            let report = try trial.run()
            let note = Comment("\(flow.rawValue) without the sync of \(path)")
            #expect(report.calls < examination.recording.operations.count, note)
            #expect(!report.findings.isEmpty, note)
        }
    }

    private static func ends(_ path: String, _ end: String) -> Bool {
        end.hasPrefix("/") ? path.hasSuffix(end) : path == end
    }
}
