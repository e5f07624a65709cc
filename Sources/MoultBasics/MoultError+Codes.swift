/// The kinds of errors that an app may want to tell apart; docs/errors.md lists all of them.
extension MoultError.Code {
    /// No trusted key made this signature.
    public static let unknownKey = Self(255)
    /// The signature does not fit the bytes, or its trusted comment was changed.
    public static let badSignature = Self(256)
    /// The signature is missing, or signatures are too few.
    public static let unsigned = Self(258)
    /// A feed that must not be believed: of another product, older than one seen before, or past its time; or key lists that are missing.
    public static let distrusted = Self(261)
    /// The store has no feed.
    public static let noFeed = Self(262)
    /// The server did not answer, or stopped before the end.
    public static let unreachable = Self(271)
    /// Another process holds a lock on the database.
    public static let databaseBusy = Self(402)
    /// The file is damaged, or no database.
    public static let databaseCorrupt = Self(403)
    /// The planned release is refused.
    public static let refused = Self(500)
    /// Not enough space.
    public static let space = Self(503)
    /// It was interrupted: Ctrl-C, or a cancelled task.
    public static let interrupted = Self(600)
    /// A file's digest is not the one that the manifest has.
    public static let digest = Self(601)
    /// A writable database is in use.
    public static let inUse = Self(631)
    /// The update failed after its decision and was undone (exit 5, or 75 if a program kept a file in use).
    public static let undone = Self(700)
    /// The update could be neither finished nor undone.
    public static let stuck = Self(701)
    /// A consumer did not reload.
    public static let consumer = Self(702)
    /// The path has no store, or the store cannot be used.
    public static let store = Self(800)
    /// Another process has the store's lock.
    public static let locked = Self(802)
    /// A writable database cannot be opened, and was not recreated.
    public static let willNotLoad = Self(820)
}
