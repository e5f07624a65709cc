internal import MoultEngine

/// Whether a cache has what an app expects in it.
public enum CacheState: Sendable, Equatable {
    /// It was there, and its schema is the one that the app expects.
    case ready
    /// It is empty: fetch again. The text says why.
    case fresh(String)
}

extension Store {
    /// Makes sure that a database which can be made again is there with this schema; needs no store and no release.
    ///
    ///     if case .fresh = try Store.cache(at: path, schema: "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB)") {
    ///         // fetch again
    ///     }
    ///
    /// Schemas are compared by their structure: white space, quotes and order make no difference. Where the SQL sets
    /// `application_id` or `user_version`, those count, too. What does not fit, is damaged, locked for good or cannot be
    /// told is removed with everything beside it, and a fresh database takes its place in one step. Several processes may
    /// call this at once: one of them does it. Call it before the database is opened.
    public static func cache(at path: String, schema: String) throws -> CacheState {
        let expected = try StandaloneCache.Expected(sql: schema)
        switch try StandaloneCache(path, .replaceOpen).prepare(expected) {
        case .ready: return .ready
        case .recreated(let why): return .fresh(why)
        }
    }
}
