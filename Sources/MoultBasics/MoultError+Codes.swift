/// The kinds of errors. This is the table of docs/troubleshooting.md: `scripts/codes --write` copies it. An app can distinguish the public ones.
extension MoultError.Code {
    // Files and values
    /// A system call failed.
    public static let system = Self(100)
    /// Only some of the files that a command writes are in place.
    package static let fileSet = Self(101)
    /// A portable build refused an operation that is unsafe without Linux features.
    package static let portableBuild = Self(102)
    /// Invalid JSON, or JSON with an unexpected structure.
    public static let json = Self(110)

    // Manifests, signatures, feeds and servers
    /// An invalid or contradictory manifest.
    public static let manifest = Self(200)
    /// libcrypto failed, because memory ran out or because of a bug.
    package static let crypto = Self(250)
    /// A key or signature file that is not in minisign's format.
    package static let minisignForm = Self(252)
    /// A comment that is not allowed in a key or signature file.
    package static let minisignComment = Self(253)
    /// The password of a key file is missing or wrong.
    package static let password = Self(254)
    /// The signature is not by a trusted key.
    public static let unknownKey = Self(255)
    /// The signature does not match the file, or its trusted comment was changed.
    public static let badSignature = Self(256)
    /// A signature in the old format, made over the whole file instead of its digest.
    package static let legacySignature = Self(257)
    /// The signature is missing, or there are too few signatures.
    public static let unsigned = Self(258)
    /// A key whose signatures are no longer valid.
    package static let expiredKey = Self(259)
    /// An invalid or contradictory feed.
    package static let feed = Self(260)
    /// A feed that must not be trusted (for another product, too old, or expired), or key lists that are missing.
    public static let distrusted = Self(261)
    /// The store has no feed.
    public static let noFeed = Self(262)
    /// A location that is not valid or not allowed.
    package static let location = Self(270)
    /// The server did not respond, or the transfer was incomplete.
    public static let unreachable = Self(271)
    /// The file does not exist, or the server refuses access to it.
    public static let notThere = Self(272)
    /// The response does not have the expected form or size.
    package static let badAnswer = Self(273)
    /// The program that sends requests to web servers is missing or broken.
    package static let helper = Self(274)
    /// Credentials for a registry, or a file with a client's key or token, cannot be used.
    package static let credentials = Self(275)

    // Archives
    /// The file's name or content is of an unsupported kind.
    package static let archiveKind = Self(300)
    /// The archive is damaged, or breaks the rules of its format.
    package static let archiveDamaged = Self(301)
    /// The archive ends too early.
    package static let archiveCut = Self(302)
    /// The archive has unexpected data after its end, or between its parts.
    package static let archiveGarbage = Self(303)
    /// The decoder would need more memory than is allowed.
    package static let archiveMemory = Self(304)
    /// An entry that is not a plain file: a link, a device, a sparse file.
    package static let archiveEntryKind = Self(305)
    /// An entry whose name is not allowed.
    package static let archiveName = Self(306)
    /// An undeclared entry.
    package static let archiveUndeclared = Self(307)
    /// A declared member that is missing.
    package static let archiveMissing = Self(308)
    /// A member that occurs twice.
    package static let archiveDuplicate = Self(309)
    /// A member with a different size than declared.
    package static let archiveSize = Self(310)
    /// A decoder library failed for a reason other than the archive.
    package static let archiveLibrary = Self(311)
    /// Frames that differ from the declaration.
    package static let archiveFrames = Self(312)
    /// Files that cannot be packed.
    package static let archivePacking = Self(313)
    /// The process that reads the archive failed, exceeded a limit, sent an invalid reply, or cannot be started.
    package static let archiveProcess = Self(314)

    // Databases and rows
    /// SQLite failed for a reason without a separate code.
    package static let sqlite = Self(400)
    /// The file cannot be opened.
    package static let cannotOpenDatabase = Self(401)
    /// Another process holds a lock on the database.
    public static let databaseBusy = Self(402)
    /// The file is damaged or not a database.
    public static let databaseCorrupt = Self(403)
    /// The database cannot be written to.
    package static let databaseReadOnly = Self(404)
    /// The disk is full, or a read or write failed.
    package static let databaseIO = Self(405)
    /// A constraint of the schema forbids the change.
    package static let constraint = Self(406)
    /// The protection against untrusted databases forbids the statement.
    package static let guarded = Self(407)
    /// The statement exceeded its time limit.
    package static let deadline = Self(408)
    /// Invalid request to SQLite, such as attaching a database as `main`.
    package static let databaseRequest = Self(409)
    /// A journal must be rolled back before the database can be read.
    package static let hotJournal = Self(410)
    /// A migration does not have the required result.
    package static let migration = Self(411)
    /// A database could not be checked: it crashed the checking process, or took too much time or memory.
    package static let validation = Self(412)
    /// A row does not fit into the new schema, and the `preserve` entry refuses the update.
    package static let rowRejected = Self(420)
    /// A row has the same key as a row of the new content, and the `preserve` entry refuses the update.
    package static let rowConflict = Self(421)
    /// The schema uses a function, collation, module or tokenizer that only the app provides.
    package static let appExtension = Self(422)
    /// The new content violates a foreign key even without the carried rows.
    package static let shippedViolation = Self(423)
    /// A `preserve` entry uses a table, column or condition that does not exist or is not allowed.
    package static let selection = Self(424)

    // Plans
    /// The planned release is refused.
    public static let refused = Self(500)
    /// This version does not support the operation.
    package static let notBuilt = Self(501)
    /// A saved plan is out of date.
    package static let stale = Self(502)
    /// Not enough disk space.
    public static let space = Self(503)
    /// The operator has put the release on hold.
    public static let held = Self(504)
    /// A user database does not fit the release, or a writable database cannot be used at its path.
    public static let userDatabase = Self(520)
    /// A database with app data or user data is missing.
    public static let missingData = Self(521)

    // Changes
    /// The operation was interrupted: Ctrl-C, or a cancelled task.
    public static let interrupted = Self(600)
    /// A file's digest does not match the manifest.
    public static let digest = Self(601)
    /// The release must not replace the file or link at the path of a database.
    public static let occupied = Self(610)
    /// A read-only database has a stray sidecar, which some versions of SQLite would read as part of the database.
    public static let straySidecar = Self(611)
    /// A staged file does not match the manifest, or fails verification.
    public static let wrongContent = Self(620)
    /// Preserved rows do not fit the release, or the release no longer preserves them.
    public static let preserve = Self(630)
    /// A writable database is in use.
    public static let inUse = Self(631)
    /// Content of a writable database cannot be moved to quarantine.
    package static let quarantine = Self(632)
    /// A writable database has another hard link, or is mounted as a single file.
    package static let severalNames = Self(633)
    /// The text encoding of a writable database differs from that of the release.
    package static let encoding = Self(634)
    /// A writable database is behind a symbolic link that another user controls.
    package static let untrustedLink = Self(635)
    /// An external step violated the protocol.
    package static let step = Self(640)
    /// An external step reported an error.
    package static let stepRefused = Self(641)
    /// The program of a step must not be run.
    package static let stepTrust = Self(642)

    // Ends of updates
    /// The update failed after the decision to install and was undone (exit 5, or 75 if a program kept a file in use).
    public static let undone = Self(700)
    /// The update could be neither completed nor undone.
    public static let stuck = Self(701)
    /// A consumer failed to reload.
    public static let consumer = Self(702)

    // Stores
    /// The path has no store, or its store cannot be used.
    public static let store = Self(800)
    /// The settings of a store are invalid.
    package static let settings = Self(801)
    /// Another process has the store's lock.
    public static let locked = Self(802)
    /// A generation is damaged or does not match its record.
    package static let generation = Self(803)
    /// A user other than root and the user who runs the command can change the store, its settings or a saved plan.
    package static let custody = Self(804)
    /// The installed data is older than the settings of the store allow.
    public static let tooOld = Self(805)
    /// A writable database cannot be opened, and was not recreated.
    public static let willNotLoad = Self(820)
    /// The SQL for an app's cache is invalid.
    package static let cacheSchema = Self(821)
    /// A path cannot be used for a cache without releases.
    package static let notACache = Self(822)
    /// `moult replace` cannot replace the file.
    package static let notReplaceable = Self(823)

    // The command and the publisher
    /// The command line is invalid.
    package static let usage = Self(900)
    /// A result or an output file cannot be written.
    package static let output = Self(910)
    /// No store was specified, and the current directory has none.
    package static let noStore = Self(920)
    /// A build script has a part that cannot be read or run.
    package static let script = Self(940)
    /// A file with rows cannot be imported.
    package static let importing = Self(941)
    /// A script uses a file outside its own directory.
    package static let outside = Self(942)
    /// A `${name}` has no value.
    package static let substitution = Self(943)
    /// The version cannot be taken from the repository.
    package static let repository = Self(944)
    /// A release cannot be packed.
    package static let packing = Self(950)
    /// The specified database, bundle, manifest or store cannot be inspected or compared.
    package static let subject = Self(951)
    /// Two databases or releases cannot be compared.
    package static let diff = Self(952)
    /// A release or feed cannot be published.
    package static let publishing = Self(960)
    /// An unexpected error.
    package static let unexpected = Self(999)
}
