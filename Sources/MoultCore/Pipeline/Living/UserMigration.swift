internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Brings the user's database to the release's schema: in one transaction, begun before the decision and committed when
/// everything else is done. Until then nobody sees anything of it, and a rollback leaves the file byte for byte.
final class UserMigration {
    let path: String
    private let migrations: Migrations
    private let target: Int
    private var connection: Connection?
    /// Whether a `-wal` lay beside it, which a connection that only rolls back must leave.
    private var hadWAL = false

    /// How long to wait for somebody else's transaction to end.
    private static let patience: Int32 = 5_000

    init(path: String, migrations: Migrations, target: Int) {
        (self.path, self.migrations, self.target) = (path, migrations, target)
    }

    /// Whether the database has come as far, which is how a settling tells done from not done.
    func isDone() throws -> Bool { try Self.isDone(path, target: target) }

    static func isDone(_ path: String, target: Int) throws -> Bool {
        try Look.into(path) { try $0.int("PRAGMA user_version") } >= Int64(target)
    }

    /// Runs the migrations and keeps the transaction open.
    func engage() throws {
        hadWAL = try Sidecars.of(path).wal != nil
        let connection = try Connection(path: path, access: .readWrite, busyTimeout: Self.patience)
        self.connection = connection
        do { try migrations.begin(on: connection) } catch {
            try release()
            guard let code = error.sqlite?.resultCode, ResultCode.busy ~= code || ResultCode.locked ~= code else {
                throw error
            }
            throw try inUse(cause: error)
        }
    }

    func commit() throws {
        try connection?.execute("COMMIT")
        try connection?.close()
        connection = nil
    }

    /// Takes all of it back, if it was not committed.
    func revert() throws {
        if let connection, try connection.isInTransaction { try connection.execute("ROLLBACK") }
        try release()
    }

    private func release() throws {
        // The last one out would bring the app's own WAL into the file: right, but not ours to do here.
        if hadWAL { try connection?.set(.noCheckpointOnClose, true) }
        try connection?.close()
        connection = nil
    }

    private func inUse(cause: any Error) throws -> MoultError {
        let holders = try OpenFiles.holders(of: [path] + Sidecars.of(path).paths).map(\.description)
        return MoultError(
            .inUse, .busy, what: "\(path) is in use",
            why: holders.isEmpty
                ? "somebody is writing to it" : "one of these is writing to it: \(holders.joined(separator: ", "))",
            now: "Try again later, or stop that program.", cause: cause)
    }
}
