internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// After the switch, checks that the app's path leads to the verified file, and that no sidecar changes what SQLite reads.
struct PostSwitchCheck {
    let database: Database
    let context: PlanContext

    func verify() throws {
        let path = context.store.path(context.path(of: database))
        guard let reached = try Files.factsThroughLinks(path) else {
            throw failed("\(path) does not lead to a file")
        }
        guard database.kind.isSealed else {
            // A database that the operator restores from quarantine may have the schema of an older release.
            if !database.kind.isReplaced, context.creates(context.path(of: database)), context.restoring == nil {
                try verifySchema(path)
            }
            return
        }
        let proven = context.store.path(ofMember: database.member, in: context.generation)
        let expected = try Files.factsThroughLinks(proven)
        guard let expected,
            (reached.device, reached.inode, reached.size) == (expected.device, expected.inode, expected.size)
        else {
            throw failed("\(path) does not lead to \(proven)")
        }
        if let sidecar = try Sidecars.besideReadOnly(proven, link: path).first {
            throw failed(Sidecars.fault(of: sidecar))
        }
    }

    /// Checks that a new writable file opens, and has the schema of the published file.
    private func verifySchema(_ path: String) throws {
        let published = context.store.path(ofMember: database.member, in: context.generation)
        do {
            let expected = try SchemaShape.ofContent(Connection(path: published, access: .immutable))
            if let lack = try NonInvasiveReader.into(path, { try SchemaShape.ofContent($0) }).lacks(of: expected).first
            {
                throw failed("\(path): \(lack)")
            }
        } catch let error as MoultError where error.outcome == .busy {
            // A process is already using the database, so the database can be opened.
        }
    }

    private func failed(_ why: String) -> MoultError {
        MoultError(
            MoultError.Code(720), what: "the database \(database.name) is not the installed file", why: why,
            now: "Find out which program changes the file, then apply the release again.")
    }
}
