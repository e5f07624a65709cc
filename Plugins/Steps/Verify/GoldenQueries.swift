internal import MoultBasics
internal import MoultSandbox
internal import StepKit

/// Checks the results of the release's golden queries on a database.
struct GoldenQueries {
    let database: Database
    let release: Manifest

    private var checks: [Manifest.GoldenQuery] { release.checks.filter { $0.on == database.name } }
    var queries: [String] { checks.map(\.sql) }

    func verify(_ answers: [ValidationReport.Answer]) throws {
        for (check, answer) in zip(checks, answers) {
            switch answer {
            case .none(let why):
                throw MoultError(
                    ContentCheck.code, .refused,
                    what: "the golden query on \(database.name) cannot run: \(shortened(check.sql))",
                    why: why, now: "The publisher must correct the query, and publish a new release.")
            case .text(let answer) where !check.expect.isMet(by: answer):
                throw MoultError(
                    ContentCheck.code, .refused, what: "\(database.member) fails a golden query",
                    why: "\(shortened(check.sql)) returns \(shortened(answer)), expected \(check.expect)",
                    now: "The publisher must correct the data or the query, and publish a new release.")
            case .text: continue
            }
        }
        guard answers.count == checks.count else {
            throw MoultError(
                ContentCheck.code, .refused, what: "\(database.member) cannot be checked",
                why: "the process that checks the file answered \(answers.count) of \(checks.count) golden queries",
                now: "Try again.")
        }
    }
}
