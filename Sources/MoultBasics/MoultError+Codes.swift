/// The kinds of errors that an app may want to distinguish; docs/errors.md lists all of them.
extension MoultError.Code {
    /// The signature is not by a trusted key.
    public static let unknownKey = Self(255)
    /// The signature does not match the file, or its trusted comment was changed.
    public static let badSignature = Self(256)
    /// The signature is missing, or there are too few signatures.
    public static let unsigned = Self(258)
    /// A feed that must not be trusted (for another product, too old, or expired), or key lists that are missing.
    public static let distrusted = Self(261)
    /// The store has no feed.
    public static let noFeed = Self(262)
    /// The server did not respond, or the transfer was incomplete.
    public static let unreachable = Self(271)
    /// The file does not exist, or the server refuses access to it.
    public static let notThere = Self(272)
    /// Another process holds a lock on the database.
    public static let databaseBusy = Self(402)
    /// The file is damaged or not a database.
    public static let databaseCorrupt = Self(403)
    /// The planned release is refused.
    public static let refused = Self(500)
    /// Not enough disk space.
    public static let space = Self(503)
    /// The operation was interrupted: Ctrl-C, or a cancelled task.
    public static let interrupted = Self(600)
    /// A file's digest does not match the manifest.
    public static let digest = Self(601)
    /// A writable database is in use.
    public static let inUse = Self(631)
    /// The update failed after the decision to install and was undone (exit 5, or 75 if a program kept a file in use).
    public static let undone = Self(700)
    /// The update could be neither completed nor undone.
    public static let stuck = Self(701)
    /// A consumer failed to reload.
    public static let consumer = Self(702)
    /// The path has no store, or its store cannot be used.
    public static let store = Self(800)
    /// Another process has the store's lock.
    public static let locked = Self(802)
    /// A writable database cannot be opened, and was not recreated.
    public static let willNotLoad = Self(820)
}
