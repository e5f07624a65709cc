internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// A user's database that is there: kept, or brought to the release's schema by the migrations that it lacks.
struct UserSchema {
    let database: Database
    let context: PlanContext
    /// Where the database is now, if the update moves it.
    var path: String?

    func change() throws -> Change {
        let kept = "exists: never replaced"
        // A release that says nothing about versions leaves them to the app.
        guard let known = database.knownUserVersion, let version = try version() else { return .keep(why: kept) }
        guard version <= known else {
            throw MoultError(
                Template.code, .refused, what: "\(place) is newer than release \(context.release.version) knows",
                why: "its user_version is \(version), and that release knows \(known)",
                now: "Apply a newer release. The database was not touched.")
        }
        let pending = database.migrations.filter { $0.number > version }
        guard let last = pending.last, context.purpose == .update else {
            return .keep(why: "\(kept), user_version \(version)")
        }
        return .migrate(path: database.path, members: pending.map(\.member), from: version, to: last.number)
    }

    private var place: String { context.store.path(path ?? database.path) }

    /// Nil if it cannot be read and the release has no need to.
    private func version() throws -> Int? {
        do { return Int(try Look.into(place) { try $0.int("PRAGMA user_version") }) } catch let error as MoultError {
            if error.outcome == .busy { throw error }
            if database.migrations.isEmpty || context.purpose != .update { return nil }
            throw MoultError(
                Template.code, .refused, what: "the user's database \(place) cannot be read",
                why: "\(error.what): \(error.why ?? "no reason was given")",
                now: "Nothing was changed. To set it aside and begin with an empty one: moult reset \(database.name) "
                    + "--set-user-data-aside",
                cause: error)
        }
    }
}
