internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Migrates the user's database to the release's schema in one transaction, begun before the decision and committed after
/// everything else. Until then no other process sees a change, and rolling the transaction back leaves the file byte for byte
/// the same.
final class Migration: WritableEffect {
    let effect: Effect
    let place: String
    let displacement: Displacement?
    var waitsForOthers: Bool { true }
    private let migrations: Migrations
    private let target: Int
    /// The path of the copy that is made before the database changes.
    private let copy: String
    private var connection: Connection?
    /// Whether the database had a `-wal`, which a connection that only rolls back must leave in place.
    private var hadWAL = false

    /// The file from which the database was created: its indexes, triggers and views do not belong to the app.
    private let template: String?
    /// How many seconds to wait for another process to end its transaction.
    private let patience: Int

    init(
        _ effect: Effect, place: String, migrations: Migrations, target: Int, template: String?, copy: String,
        patience: Int, displacement: Displacement
    ) {
        self.template = template
        (self.effect, self.place, self.migrations) = (effect, place, migrations)
        (self.target, self.copy, self.patience, self.displacement) = (target, copy, patience, displacement)
    }

    /// Returns whether the database has reached the target version. Recovery uses this to tell whether the migration was
    /// committed.
    static func isDone(_ place: String, target: Int) throws -> Bool {
        guard try Files.factsThroughLinks(place) != nil else { return false }
        return try NonInvasiveReader.into(place) { try $0.int("PRAGMA user_version") } >= Int64(target)
    }

    func isCommitted() throws -> Bool {
        if let connection, try connection.isInTransaction { return false }
        return try Self.isDone(place, target: target)
    }

    /// Runs the migrations and keeps the transaction open. If they change or drop values, a copy of the original database is
    /// kept in quarantine.
    func hold() throws {
        hadWAL = try Sidecars.of(place).wal != nil
        let connection = try Connection(path: place, access: .readWrite, busyTimeout: Int32(clamping: patience * 1000))
        self.connection = connection
        try Files.ensureDirectory(Files.directory(of: copy), mode: 0o700)
        try Files.remove(copy)
        do {
            try migrations.begin(on: connection) { [copy, place] in
                // In WAL mode other connections can read. In rollback mode none can, and the file is complete.
                guard try connection.header().isWAL else { return try connection.copyFile(to: copy) }
                let reader = try Connection(path: place, access: .readWrite)
                let before = try Connection(path: copy, access: .readWriteCreate)
                try before.execute("PRAGMA synchronous = OFF")
                try reader.backup(to: before)
                try before.close()
                try reader.close()
            }
        } catch {
            try release()
            guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code || ResultCode.locked ~= code else {
                throw error
            }
            throw InUse.error(place, advice: "Try again later, or stop that program.", cause: error)
        }
        try keepOriginalIfNeeded(connection)
    }

    private func keepOriginalIfNeeded(_ connection: Connection) throws {
        let before = try Connection(path: copy, access: .readOnly)
        let loss = try MigrationLoss(from: before, to: connection)
        try before.close()
        let fates = loss.tables.map { RowFate(table: $0.name, kept: $0.rows) }
        let isLost = try !fates.isEmpty || !Self.ofApp(loss.items, template: template).isEmpty
        displacement?.prove(fates, isShipped: false, hasContentLeft: isLost)
        if displacement?.isKept == true { try displacement?.keep(copy: copy) }
    }

    /// Returns the items that the app has created or changed: those that the file from which the database was created does not
    /// have.
    static func ofApp(_ items: [SchemaShape.Item], template: String?) throws -> [SchemaShape.Item] {
        guard let template, !items.isEmpty else { return items }
        let pristine = try Connection(path: template, access: .immutable)
        let shipped = try SchemaShape(of: pristine).derived
        try pristine.close()
        return items.filter { !shipped.contains($0) }
    }

    func commit() throws -> Bool {
        guard let connection else { return false }
        try connection.execute("COMMIT")
        // The migration is committed, even if closing fails.
        self.connection = nil
        try connection.close()
        return true
    }

    func revert() throws { try release() }

    /// Rolls back the transaction, unless it was committed.
    func release() throws {
        if let connection, try connection.isInTransaction { try connection.execute("ROLLBACK") }
        // The last connection to close would checkpoint the app's own WAL: harmless, but a change that moult must not make
        // here.
        if hadWAL { try connection?.set(.noCheckpointOnClose, true) }
        try connection?.close()
        connection = nil
    }
}
