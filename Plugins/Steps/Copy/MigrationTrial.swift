internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Runs the migrations on a copy of the user's database first: what fails there, fails before anything is touched.
///
/// The copy is afterwards what it was, and stays until the update has ended.
struct MigrationTrial {
    let database: Database
    let context: PrepareContext

    func run(_ members: [String], path: String) throws {
        // They are needed again if a crash lets the next command finish the update.
        try makeDurable(members)
        let directory = "\(context.staging)/before"
        try Files.ensureDirectory(directory, mode: 0o700)
        let copy = "\(directory)/\(path)"
        try context.progress(.init("try the migrations of \(database.name)", done: 0, total: 0))
        try Look.copy(context.plan.store.path(path), to: copy)
        let connection = try Connection(path: copy, access: .readWrite)
        try migrations(members).begin(on: connection)
        try prove(connection)
        try connection.execute("ROLLBACK")
        try connection.close()
    }

    private func migrations(_ members: [String]) throws -> Migrations {
        var migrations = Migrations(
            try database.migrations.filter { members.contains($0.member) }.map {
                try .init(name: $0.member, number: $0.number, file: context.unpacked($0.member))
            })
        let (release, name) = (context.plan.release, database.name)
        migrations.mayShrink = { release.mayShrink(name, table: $0, from: $1, to: $2) }
        return migrations
    }

    /// What the migrations leave must be what the release's own template is, as far as that goes: an app may have made
    /// tables or indexes of its own besides.
    private func prove(_ connection: Connection) throws {
        let wanted = database.identity
        let found = try Identity(of: connection)
        if let version = wanted.userVersion, version != Int(found.userVersion) {
            throw failed("they end at user_version \(found.userVersion), and the release's own is \(version)")
        }
        if let id = wanted.applicationID, id != Int(found.applicationID) {
            throw failed("application_id is \(found.applicationID), and the release's own is \(id)")
        }
        let template = try Connection(
            path: LivingStaging(context: context).pristine(database.member), access: .immutable)
        if let lack = try found.shape.lacks(of: SchemaShape(of: template)).first { throw failed(lack) }
        try template.close()
        let findings = try database.verify == .full ? connection.fullCheck() : connection.quickCheck()
        if let finding = findings.first { throw failed(finding) }
    }

    private func failed(_ why: String) -> MoultError {
        MoultError(
            Template.code, .refused,
            what:
                "the migrations of \(database.name) do not lead to the database of release \(context.plan.release.version)",
            why: why, now: "Nothing was changed. The release's publisher must mend the migrations, or the template.")
    }

    private func makeDurable(_ members: [String]) throws {
        var directories: Set<String> = []
        for member in members {
            try Files.seal(context.unpacked(member), mode: 0o600)
            var directory = Files.directory(of: member)
            while directory != "." {
                directories.insert(context.unpacked(directory))
                directory = Files.directory(of: directory)
            }
        }
        for directory in directories { try Files.syncDirectory(directory) }
        try Files.syncDirectory(context.unpacked(""))
    }
}
