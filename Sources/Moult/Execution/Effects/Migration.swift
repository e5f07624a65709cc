internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite
internal import StepKit

/// Migrates the user's database to the release's schema. Until the commit no other process sees a change.
final class Migration: TransactionEffect {
    private let migrations: Migrations
    /// The file from which the database was created: its indexes, triggers and views do not belong to the app.
    private let template: String?
    private let misfit: (Connection) throws -> MoultError?
    /// The indexes, triggers and views of the app that the migrations drop or change.
    private var lostItems: [SchemaShape.Item] = []

    init(
        _ effect: Effect, at path: String, in transaction: Transaction, _ migrations: Migrations, template: String?,
        misfit: @escaping (Connection) throws -> MoultError?, _ displacement: Displacement
    ) {
        (self.migrations, self.template, self.misfit) = (migrations, template, misfit)
        super.init(effect, at: path, in: transaction, displacement)
    }

    /// Runs the migrations and keeps the transaction open. If they change or drop values, a copy of the original database is
    /// kept in quarantine.
    override func prepareLocked() throws {
        try Files.ensureDirectory(Files.directory(of: copy), mode: 0o700)
        try Files.remove(copy)
        let migrated = try begin(advice: "Try again later, or stop that program.") { connection in
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
        try prove(migrated)
        if displacement?.isKept == true { try displacement?.keep(copy: copy) }
        try mark(migrated)
    }

    /// Runs the migrations on a second copy.
    override func rehearse() throws {
        try Files.ensureDirectory(Files.directory(of: copy), mode: 0o700)
        try NonInvasiveReader.copy(place, to: copy)
        let migrated = "\(copy).migrated"
        try Files.copy(copy, to: migrated, mode: 0o600)
        let connection = try Connection(unsynced: migrated, shownAs: place)
        try migrations.begin(on: connection)
        try prove(connection)
        try connection.execute("ROLLBACK")
        try connection.close()
    }

    /// Finds out what the migrations have changed or dropped. Throws if the schema of the release is not there: a program may have
    /// set `user_version` without the migration.
    private func prove(_ connection: Connection) throws {
        if let misfit = try misfit(connection) { throw misfit }
        let before = try Connection(path: copy, access: .readOnly)
        let loss = try MigrationLoss(from: before, to: connection)
        try before.close()
        let fates = loss.tables.map { RowFate(table: $0.name, kept: $0.rows) }
        lostItems = try ofApp(loss.items)
        displacement?.prove(fates, hasContentLeft: !fates.isEmpty || !lostItems.isEmpty)
    }

    override var warnings: [Advice] {
        if lostItems.isEmpty { return [] }
        let names = lostItems.map { "\($0.kind) \($0.name)" }.joined(separator: ", ")
        return [
            "\(path): the migrations drop or change schema objects of the app: \(names); the old database is kept in quarantine"
        ]
    }

    /// Returns the items that the app has created or changed: those that `template` does not have.
    private func ofApp(_ items: [SchemaShape.Item]) throws -> [SchemaShape.Item] {
        guard let template, !items.isEmpty else { return items }
        let pristine = try Connection(path: template, access: .immutable)
        let shipped = try SchemaShape(of: pristine).derived
        try pristine.close()
        return items.filter { !shipped.contains($0) }
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
