internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// The queries whose answers the release promises, asked of the staged file.
struct GoldenQueries {
    let database: Database
    let release: Manifest

    func prove(on connection: Connection) throws {
        for check in release.checks where check.on == database.name {
            let answer: String
            do { answer = try connection.scalar(check.sql).map(Self.text) ?? "no row" } catch {
                throw MoultError(
                    Proof.code, .refused, what: "the golden query on \(database.name) cannot be asked: \(check.sql)",
                    why: "\(error)", now: "Correct the query, and publish the release again.", cause: error)
            }
            if !check.expect.isMet(by: answer) {
                throw MoultError(
                    Proof.code, .refused, what: "\(database.member) does not answer as the release promises",
                    why: "\(check.sql) gives \(answer), expected \(check.expect)",
                    now: "Publish the release again with the right data.")
            }
        }
    }

    private static func text(_ value: Value) -> String {
        switch value {
        case .null: "NULL"
        case .integer(let number): String(number)
        case .real(let number): "\(number)"
        case .text(let text): text
        case .blob(let bytes): "\(bytes.count) bytes"
        }
    }
}
