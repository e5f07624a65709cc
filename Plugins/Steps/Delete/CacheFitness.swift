internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// A cache stays if it opens and has the release's schema; otherwise all of it is set aside, because it can be made again.
struct CacheFitness {
    let database: Database
    let context: PlanContext

    /// Why it must go; nil if it stays, or is not there.
    func fault() throws -> String? {
        guard let schema = database.identity.schema else {
            throw MoultError(
                Adoption.code, .refused, what: "databases.\(database.name).identity.schema is missing",
                why: "without it nobody can tell whether a cache that is there fits release \(context.release.version)",
                now: "Publish the release again: moult pack writes it.")
        }
        let path = context.store.path(context.path(of: database))
        if case .link(let target) = try context.store.look(path), target.hasPrefix(".moult/") {
            // The link of a sealed database that the release turns into a cache goes by itself.
            return nil
        }
        switch try Fitness.of(path, judge: { try differs(Identity(of: $0), schema: schema) }) {
        case .fits, .missing: return nil
        case .unfit(let why):
            try refuseUsers()
            return why
        case .untold(let error):
            try refuseUsers()
            return error.why ?? error.what
        }
    }

    private func differs(_ found: Identity, schema: String) throws -> String? {
        let digest = "sha256:\(try SHA256.digest(of: Array(found.shape.canonicalText.utf8)).hex)"
        if digest != schema { return "its schema is not that of release \(context.release.version)" }
        return database.compatible?.fault(
            applicationID: Int(found.applicationID), userVersion: Int(found.userVersion))
    }

    /// What people wrote does not become a cache by a new release.
    private func refuseUsers() throws {
        let path = context.path(of: database)
        guard
            let before = context.installed?.databases.first(where: {
                ($0.kind == .user || $0.kind == .shared) && context.path(of: $0) == path
            })
        else { return }
        throw MoultError(
            Adoption.code, .refused, what: "\(context.store.path(path)) is the user's",
            why: "the installed release has it as \(before.kind.rawValue) database \"\(before.name)\", and this one "
                + "as a cache, which it would set aside",
            now: "Publish the release with another path for \"\(database.name)\".")
    }
}
