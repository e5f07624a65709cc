internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// A user's database that is there: kept, or brought to the release's schema by the migrations that it lacks.
struct UserSchema {
    let database: Database
    let context: PlanContext

    func change() throws -> Change {
        let kept = "exists: never replaced"
        // A release that says nothing about versions leaves them to the app.
        guard let known = database.knownUserVersion, let version = try version() else { return .keep(why: kept) }
        guard version <= known else {
            throw MoultError(
                Template.code, .refused, what: "\(path) is newer than release \(context.release.version) knows",
                why: "its user_version is \(version), and that release knows \(known)",
                now: "Apply a newer release. The database was not touched.")
        }
        let pending = database.migrations.filter { $0.number > version }
        guard let last = pending.last, context.purpose == .update else {
            return .keep(why: "\(kept), user_version \(version)")
        }
        return .migrate(path: database.path, members: pending.map(\.member), from: version, to: last.number)
    }

    private var path: String { context.store.path(database.path) }

    /// Nil if it cannot be read and the release has no need to.
    private func version() throws -> Int? {
        do { return Int(try Look.into(path) { try $0.int("PRAGMA user_version") }) } catch let error as MoultError {
            if error.outcome == .busy { throw error }
            if database.migrations.isEmpty || context.purpose != .update { return nil }
            throw MoultError(
                Template.code, .refused, what: "the user's database \(path) cannot be read",
                why: "\(error.what): \(error.why ?? "no reason was given")",
                now: "It is never replaced on its own. To set it aside and begin anew: moult reset \(database.name)",
                cause: error)
        }
    }
}
