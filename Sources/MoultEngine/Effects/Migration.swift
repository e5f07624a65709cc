internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Brings the user's database to the release's schema: in one transaction, begun before the decision and committed when
/// everything else is done. Until then no other process sees anything of it, and a rollback leaves the file byte for byte.
final class Migration: WritableEffect {
    let effect: Effect
    let place: String
    let displacement: Displacement?
    var waitsForOthers: Bool { true }
    private let migrations: Migrations
    private let target: Int
    /// Where the database is copied to before it changes.
    private let copy: String
    private var connection: Connection?
    /// Whether a `-wal` lay next to it, which a connection that only rolls back must leave.
    private var hadWAL = false

    /// How many seconds to wait for another process to end its transaction.
    private let patience: Int

    init(
        _ effect: Effect, place: String, migrations: Migrations, target: Int, copy: String, patience: Int,
        displacement: Displacement
    ) {
        (self.effect, self.place, self.migrations) = (effect, place, migrations)
        (self.target, self.copy, self.patience, self.displacement) = (target, copy, patience, displacement)
    }

    /// Whether the database has come as far, which is how recovery tells done from not done.
    static func isDone(_ place: String, target: Int) throws -> Bool {
        guard try Files.factsThroughLinks(place) != nil else { return false }
        return try NonInvasiveReader.into(place) { try $0.int("PRAGMA user_version") } >= Int64(target)
    }

    func isCommitted() throws -> Bool {
        if let connection, try connection.isInTransaction { return false }
        return try Self.isDone(place, target: target)
    }

    /// Runs the migrations and keeps the transaction open. If they change or drop values, the database as it was is kept.
    func hold() throws {
        hadWAL = try Sidecars.of(place).wal != nil
        let connection = try Connection(path: place, access: .readWrite, busyTimeout: Int32(clamping: patience * 1000))
        self.connection = connection
        try Files.ensureDirectory(Files.directory(of: copy), mode: 0o700)
        try Files.remove(copy)
        do {
            try migrations.begin(on: connection) { [copy, place] in
                // In WAL mode another connection may read. In rollback mode none may, and the file is complete.
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
        try keepWhatChanges(connection)
    }

    private func keepWhatChanges(_ connection: Connection) throws {
        let before = try Connection(path: copy, access: .readOnly)
        let fates = try MigratedContent.fates(from: before, to: connection)
        try before.close()
        displacement?.prove(fates, isShipped: false, hasContentLeft: fates.contains { $0.kept > 0 })
        if displacement?.isKept == true { try displacement?.keep(copy: copy) }
    }

    func commit() throws -> Bool {
        guard let connection else { return false }
        try connection.execute("COMMIT")
        // It is done, whatever closing says.
        self.connection = nil
        try connection.close()
        return true
    }

    func revert() throws { try release() }

    /// Takes all of it back, if it was not committed.
    func release() throws {
        if let connection, try connection.isInTransaction { try connection.execute("ROLLBACK") }
        // The last one out would bring the app's own WAL into the file: right, but not ours to do here.
        if hadWAL { try connection?.set(.noCheckpointOnClose, true) }
        try connection?.close()
        connection = nil
    }
}

/// The effect of migrations on existing values: the rows with a value that only the copy has.
enum MigratedContent {
    static func fates(from before: Connection, to after: Connection) throws -> [RowFate] {
        try MigrationLoss(from: before, to: after).tables.map {
            RowFate(table: $0.name, kept: $0.rows)
        }
    }
}
