/// What may be done about a database that will not load.
public enum Recovery: Sendable, CaseIterable {
    /// Nothing: the error names the file.
    case never
    /// A cache is begun anew; what people wrote is left alone.
    case cachesOnly
    /// What people wrote is set aside, too, and begun anew; nothing is ever deleted.
    case setUserDataAside
}

/// A database that was begun anew.
public struct Recovered: Sendable {
    /// What was wrong with the old one.
    public let why: String
    /// The directory in which the old files are, with everything that lay beside them; nil if there were none.
    public let setAside: String?
    /// A database with the rows that could still be read; nil if there were none, or it was a cache.
    public let salvaged: String?
}
