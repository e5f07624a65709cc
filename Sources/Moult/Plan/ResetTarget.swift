internal import MoultBasics
internal import StepKit

/// Determines whether a database may be reset, and which permission that requires.
struct ResetTarget {
    let release: Manifest
    let name: String

    func check(setsUserDataAside: Bool) throws {
        guard let database = release.database(name) else {
            let names = release.databases.filter { !$0.kind.isSealed }.map(\.name)
            throw MoultError(
                .refused, .refused, what: "release \(release.version) has no database \"\(name)\"",
                why: names.isEmpty
                    ? "all of its databases are read-only"
                    : "the databases that can be reset are \(names.joined(separator: ", "))",
                now: didYouMean(name, among: names))
        }
        if database.kind.isSealed {
            throw MoultError(
                .refused, .refused, what: "\(name) cannot be reset",
                why: "it is read-only", now: "Repair it from its release: \(moult: "apply", "RELEASE")")
        }
        if !database.kind.isDisposable, !setsUserDataAside {
            throw MoultError(
                .refused, .refused, what: "\(name) contains user data",
                why: "a reset sets all of it aside and starts with "
                    + database.kind.freshContent,
                now: "If you want that: \(moult: "reset", name, "--set-user-data-aside")")
        }
    }
}
