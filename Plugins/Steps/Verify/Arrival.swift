internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// After the switch: the app's path must reach the very file that was proven, with no sidecar that would change it.
struct Arrival {
    let database: Database
    let context: PlanContext

    func prove() throws {
        let path = context.store.path(database.path)
        guard let reached = try Files.factsThroughLinks(path) else {
            throw failed("\(path) leads nowhere")
        }
        guard database.kind.isSealed else { return }
        let proven = context.store.path(ofMember: database.member, in: context.generation)
        let expected = try Files.factsThroughLinks(proven)
        guard let expected,
            (reached.device, reached.inode, reached.size) == (expected.device, expected.inode, expected.size)
        else {
            throw failed("\(path) does not reach \(proven)")
        }
        // SQLite looks for sidecars beside the file that links lead to, older versions beside the link.
        let beside = try Files.target(ofLink: proven) ?? proven
        for suffix in ["-wal", "-shm", "-journal"] {
            for name in [path + suffix, beside + suffix] where try Files.facts(name) != nil {
                throw failed("\(name) lies beside it and would change what is read")
            }
        }
    }

    private func failed(_ why: String) -> MoultError {
        MoultError(
            MoultError.Code(720), what: "\(database.name) is not what was installed", why: why,
            now: "See who writes there, then apply again.")
    }
}
