internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// Checks whether a cache opens and has the release's schema. If not, the cache and its sidecars are set aside, because a cache
/// can be recreated.
struct CacheFitness {
    let database: Database
    let context: PlanContext

    /// Returns why the cache must be set aside; nil if it stays or does not exist.
    func fault() throws -> String? {
        guard let schema = database.identity.schema else {
            throw MoultError(
                .occupied, .refused, what: "databases.\(database.name).identity.schema is missing",
                why:
                    "without this field, moult cannot check whether an existing cache matches release \(context.release.version)",
                now: "Pack and publish the release again. `moult pack` adds this field.")
        }
        let path = context.store.path(context.path(of: database))
        if case .sealedLink = try context.store.look(path) {
            // If the release turns a read-only database into a cache, the link is removed separately.
            return nil
        }
        switch try Fitness.of(path, judge: { try differs($0, schema: schema) }) {
        case .fits, .missing: return nil
        case .unfit(let why, _): return why
        case .unknown(let error):
            // A lock or a missing permission says nothing about the cache.
            if error.isAboutAccess { throw error }
            return error.why ?? error.what
        }
    }

    private func differs(_ connection: Connection, schema: String) throws -> String? {
        let found = try Identity(of: connection)
        // The release's own file has moult's tables if its source comes from a store, and a cache has them if it was a shared
        // database before.
        let isSame = try [found.shape, .ofContent(connection)].contains {
            "sha256:\(try SHA256.digest(of: Array($0.canonicalText.utf8)).hex)" == schema
        }
        if !isSame { return "its schema does not match release \(context.release.version)" }
        return database.compatible?.fault(
            applicationID: Int(found.applicationID), userVersion: Int(found.userVersion))
    }
}
