internal import MoultBasics
internal import MoultFiles
internal import MoultRows
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
    private(set) var marker: OldMarker?
    /// The path in the plan.
    private let path: String
    /// The ID of the transaction.
    private let id: String
    private let migrations: Migrations
    /// Returns what the schema of the release has and the database lacks.
    private let misfit: (Connection) throws -> MoultError?
    /// The path of the copy that is made before the database changes.
    private let copy: String
    private var transaction: HeldTransaction?
    /// The indexes, triggers and views of the app that the migrations drop or change.
    private var lostItems: [SchemaShape.Item] = []

    /// The file from which the database was created: its indexes, triggers and views do not belong to the app.
    private let template: String?
    /// How many seconds to wait for another process to end its transaction.
    private let patience: Int

    init(
        _ effect: Effect, place: String, path: String, id: String, migrations: Migrations, template: String?,
        misfit: @escaping (Connection) throws -> MoultError?, copy: String, patience: Int, displacement: Displacement
    ) {
        self.template = template
        (self.effect, self.place, self.path, self.id, self.migrations) = (effect, place, path, id, migrations)
        (self.misfit, self.copy, self.patience, self.displacement) = (misfit, copy, patience, displacement)
    }

    func endFailedCommit(_ error: any Error) throws { try transaction?.endFailedCommit(error) }

    /// Runs the migrations and keeps the transaction open. If they change or drop values, a copy of the original database is
    /// kept in quarantine.
    func prepareLocked() throws {
        try Files.ensureDirectory(Files.directory(of: copy), mode: 0o700)
        try Files.remove(copy)
        let advice: Advice = "Try again later, or stop that program."
        let transaction = try HeldTransaction(place, patience: patience, advice: advice) { connection in
            try migrations.begin(on: connection) { [copy, place] in
                // In WAL mode other connections can read. In rollback mode none can, and the file is complete.
                guard try connection.header().isWAL else { return try connection.copyFile(to: copy) }
                let reader = try Connection(path: place, access: .readWrite)
                let before = try Connection(unsynced: copy, access: .readWriteCreate)
                try reader.backup(to: before)
                try before.close()
                try reader.close()
            }
        }
        self.transaction = transaction
        let connection = transaction.connection
        // A program may have set `user_version` without the migration.
        if let misfit = try misfit(connection) { throw misfit }
        try keepOriginalIfNeeded(connection)
        marker = OldMarker(path: path, transaction: try TransactionMarker.read(connection))
        try TransactionMarker.write(id, to: connection)
    }

    /// Runs the migrations on a second copy.
    func rehearse() throws {
        try Files.ensureDirectory(Files.directory(of: copy), mode: 0o700)
        try NonInvasiveReader.copy(place, to: copy)
        let migrated = "\(copy).migrated"
        try Files.copy(copy, to: migrated, mode: 0o600)
        let connection = try Connection(unsynced: migrated, shownAs: place)
        try migrations.begin(on: connection)
        if let misfit = try misfit(connection) { throw misfit }
        try prove(connection)
        try connection.execute("ROLLBACK")
        try connection.close()
    }

    private func keepOriginalIfNeeded(_ connection: Connection) throws {
        try prove(connection)
        if displacement?.isKept == true { try displacement?.keep(copy: copy) }
    }

    /// Finds out what the migrations have changed or dropped.
    private func prove(_ connection: Connection) throws {
        let before = try Connection(path: copy, access: .readOnly)
        let loss = try MigrationLoss(from: before, to: connection)
        try before.close()
        let fates = loss.tables.map { RowFate(table: $0.name, kept: $0.rows) }
        lostItems = try Self.ofApp(loss.items, template: template)
        displacement?.prove(fates, hasContentLeft: !fates.isEmpty || !lostItems.isEmpty)
    }

    var warnings: [Advice] {
        if lostItems.isEmpty { return [] }
        let names = lostItems.map { "\($0.kind) \($0.name)" }.joined(separator: ", ")
        return [
            "\(path): the migrations drop or change schema objects of the app: \(names); the old database is kept in quarantine"
        ]
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
        guard let transaction else { return false }
        try transaction.commit()
        return true
    }

    func revert() throws { try release() }
    func release() throws {
        try transaction?.release()
        transaction = nil
    }
}

extension Manifest {
    /// Returns the error for a user database that lacks parts of the schema of the release's file; nil if it lacks none, or if the app
    /// itself changes the schema.
    func schemaMisfit(
        of database: Database, template: String, _ connection: Connection, at place: String
    ) throws -> MoultError? {
        guard database.schemaOwner == .release else { return nil }
        let expected = try SchemaShape.ofContent(Connection(path: template, access: .immutable))
        return try SchemaShape.ofContent(connection).lacks(of: expected).first.map { schemaMisfit($0, at: place) }
    }
}
