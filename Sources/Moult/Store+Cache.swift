internal import CLinux
internal import MoultBasics
internal import MoultCore
internal import MoultFiles
internal import MoultSQLite

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
        try AppCache(path: Files.absolute(path), schema: schema).prepare()
    }
}

/// One database of an app's own that can be made again.
struct AppCache {
    let path: String
    let schema: String

    private static let suffixes = ["-journal", "-wal", "-shm"]
    /// How long another process may take to make the same cache.
    private static let patience = 30

    private var directory: String { Files.directory(of: path) }
    /// What is being made, and what is being removed: known by their names, so that the next call finds what a crash left.
    private var fresh: String { "\(directory)/.\(Files.name(of: path)).moult-new" }
    private var old: String { "\(directory)/.\(Files.name(of: path)).moult-old" }

    func prepare() throws -> CacheState {
        let expected = try Expected(schema)
        // A reader's lock while it is looked at, so that nobody takes it for sound in the middle of being replaced.
        if try locked(.shared, { try fault(expected) }) == nil { return .ready }
        return try locked(.exclusive) {
            // Another process may have made it while we waited.
            guard let why = try fault(expected) else { return .ready }
            try removeLeftovers()
            try make()
            try replace()
            try removeLeftovers()
            return .fresh(why)
        }
    }

    // MARK: looking

    private struct Expected {
        let shape: SchemaShape
        let applicationID: Int32
        let userVersion: Int32

        init(_ schema: String) throws {
            let connection = try Connection.inMemory()
            do { try connection.execute(schema) } catch {
                throw MoultError(
                    .cacheSchema, .usage, what: "the schema of a cache cannot be made",
                    why: (error as? MoultError)?.why ?? "\(error)", now: "Correct the SQL.", cause: error)
            }
            let identity = try Identity(of: connection)
            (shape, applicationID, userVersion) = (identity.shape, identity.applicationID, identity.userVersion)
            try connection.close()
        }

        func difference(to found: Identity) -> String? {
            if let difference = found.shape.diff(against: shape).first { return difference }
            if applicationID != 0, applicationID != found.applicationID {
                return "its application_id is \(found.applicationID), not \(applicationID)"
            }
            if userVersion != 0, userVersion != found.userVersion {
                return "its user_version is \(found.userVersion), not \(userVersion)"
            }
            return nil
        }
    }

    private func fault(_ expected: Expected) throws -> String? {
        switch try Fitness.of(path, judge: { try expected.difference(to: Identity(of: $0)) }) {
        case .fits: nil
        case .missing: "it was not there"
        case .unfit(let why): why
        case .untold(let error): error.why ?? error.what
        }
    }

    // MARK: making

    private func make() throws {
        let connection = try Connection(path: fresh, access: .readWriteCreate)
        try connection.execute(schema)
        try connection.close()
        try Files.seal(fresh, mode: 0o644)
    }

    /// First the sidecars go, then the fresh file takes the place of the old one in one step: with the main file first,
    /// somebody could read the fresh one with the rows of the old one's `-wal`.
    private func replace() throws {
        for suffix in Self.suffixes where try Files.facts(path + suffix) != nil {
            try Files.rename(path + suffix, to: old + suffix)
        }
        if try !Files.renameIfFree(fresh, to: path) {
            try Files.exchange(fresh, path)
            try Files.rename(fresh, to: old)
        }
        try Files.syncDirectory(directory)
    }

    private func removeLeftovers() throws {
        for name in [fresh, old] { for suffix in [""] + Self.suffixes { try Files.removeTree(name + suffix) } }
    }

    private func locked<R>(_ mode: FileLock.Mode, _ body: () throws -> R) throws -> R {
        let lock = try lock(mode)
        defer { withExtendedLifetime(lock) {} }
        return try body()
    }

    /// Locks the directory: the file itself is what comes and goes.
    private func lock(_ mode: FileLock.Mode) throws -> FileLock {
        let until = Timestamp.now.seconds + Self.patience
        while true {
            if let lock = try FileLock.take(directory, mode, directory: true) { return lock }
            if Timestamp.now.seconds >= until { break }
            usleep(10_000)
        }
        let holders = try LockHolders.of(directory).map(\.description).joined(separator: ", ")
        throw MoultError(
            .locked, .busy, what: "the cache \(path) is being made",
            why: "\(holders.isEmpty ? "another process" : holders) has the lock of \(directory)",
            now: "Try again later.")
    }
}

extension MoultError.Code {
    /// The SQL of an app's own cache is wrong.
    static let cacheSchema = Self(821)
}
