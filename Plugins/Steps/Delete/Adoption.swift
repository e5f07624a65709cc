internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultTrust
internal import StepKit

/// A plain file that was at a database's path before moult is not lost: it becomes a generation of its own.
enum Adoption {
    /// What is at a path cannot be taken over by the release.
    static let code = MoultError.Code(610)

    /// The first free name among `0+adopted`, `0+adopted.2`, …
    static func generation(_ context: PlanContext) throws -> String {
        var number = 1
        while true {
            let name = number == 1 ? "0+adopted" : "0+adopted.\(number)"
            if try context.store.look(".moult/generations/\(name)") == .nothing { return name }
            number += 1
        }
    }

    /// What the installed release calls the user's is not taken over by a reference database.
    static func refuseUsers(_ database: Database, _ context: PlanContext) throws {
        guard let user = context.installed?.databases.first(where: { $0.path == database.path && !$0.kind.isSealed })
        else {
            return
        }
        throw MoultError(
            code, .refused, what: "\(context.store.path(database.path)) is the user's",
            why:
                "the installed release has it as \(user.kind.rawValue) database \"\(user.name)\", and this one would replace it",
            now: "Publish the release with another path for \"\(database.name)\".")
    }

    /// Drains each file, so that it is whole without its sidecars, and makes the generation that will hold them.
    static func prepare(_ files: [(name: String, path: String)], _ context: PrepareContext) throws {
        let directory = "\(context.staging)/adopted"
        try Files.makeDirectory(directory, mode: 0o700)
        var databases: [JSON.Member] = []
        var sealed: [JSON] = []
        for file in files {
            let path = context.plan.store.path(file.path)
            try drain(path)
            let digest = try digest(path)
            let facts = try Files.facts(path)
            let size = JSON.size(facts?.size ?? 0)
            databases.append(
                JSON.Member(
                    file.name,
                    [
                        "kind": "reference", "member": .string(file.path), "path": .string(file.path), "size": size,
                        "sha256": .string(digest),
                    ]))
            // The time of change is not known yet: taking the file out of its place changes it.
            sealed.append([
                "member": .string(file.path), "sha256": .string(digest), "size": size,
                "inode": .integer(Int64(bitPattern: facts?.inode ?? 0)), "changed": [0, 0],
            ])
        }
        let manifest: JSON = [
            "manifest": 1, "product": .string(context.plan.release.product), "version": "0.0.0", "sequence": 0,
            "bundle": ["file": "none", "size": 0, "sha256": .string(String(repeating: "0", count: 64))],
            "databases": .object(databases),
        ]
        try Files.writeNew(Array(manifest.pretty.utf8), to: "\(directory)/manifest.json", mode: 0o444)
        try Files.writeNew(
            Array((["seal": 1, "files": .array(sealed)] as JSON).line.utf8), to: "\(directory)/seal.json", mode: 0o444)
        try Files.syncDirectory(directory)
    }

    /// Nobody may have the file open, and nothing of it may be in a sidecar.
    private static func drain(_ path: String) throws {
        guard try WriteLease.take(path) != nil else { throw WriteLease.held(path) }
        do { try Settle.checkpointAndSeal(path) } catch let error as MoultError where error.code == .databaseCorrupt {
            // What is no database is kept as it is, if SQLite would take nothing beside it for a part of it.
            guard try Sidecars.of(path).isEmpty else { throw error }
        }
        guard try WriteLease.take(path) != nil else { throw WriteLease.held(path) }
    }

    private static func digest(_ path: String) throws -> String {
        // Nobody has it open, this process neither: the lease just said so.
        try SHA256.digest(ofFileAt: path).hex
    }
}
