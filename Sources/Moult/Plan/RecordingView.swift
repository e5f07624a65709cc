internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import StepKit

/// The steps' view of a store, which records what a step finds at a path as a fact of the plan.
final class RecordingView: StoreView, @unchecked Sendable {
    // Unchecked: planning runs on one thread, and the observations are read after it has ended.
    private let store: StoreSnapshot
    private var layout: StoreLayout { store.layout }
    private(set) var facts: [Plan.Fact] = []

    /// Whether the metadata of files that had to be read is recorded: only under the store's lock.
    private let renews: Bool
    /// The generation that an update installs, with its manifest; nil unless the plan is an update.
    private let incoming: (generation: String, bytes: [UInt8])?

    init(store: StoreSnapshot, renews: Bool = false, incoming: (generation: String, bytes: [UInt8])? = nil) {
        (self.store, self.renews, self.incoming) = (store, renews, incoming)
    }

    var root: String { layout.root }
    func path(_ name: String) -> String { layout.file(name) }

    func look(_ path: String) throws -> Found {
        let found = try Found(at: layout.file(path))
        // If this user owns the file, a chmod makes it readable, so an unreadable file is an error. Files of other users may be
        // set aside unread.
        if case .file = found, Permission.write(layout.file(path)).command != nil {
            try Sidecars.requireReadable(layout.file(path))
        }
        note(Plan.Fact(path: layout.file(path), field: "kind", value: found.description))
        return found
    }

    func marker(_ path: String) throws -> String? { try ReleaseMarker.digest(in: layout.file(path)) }

    func earlierDatabases() throws -> [Database] {
        let names = try Generation.names(layout)
        // A generation with a damaged manifest provides no information.
        return names.compactMap { try? store.generation($0).manifest }.sorted { $1.version.precedes($0.version) }
            .flatMap(\.databases)
    }

    func releasedDatabase(digest: String) throws -> ReleasedDatabase? { try store.releasedDatabase(digest: digest) }
    func leads(_ path: String) throws -> Bool { try Files.factsThroughLinks(layout.file(path)) != nil }
    func look(forGeneration generation: String) throws -> Found { try look(layout.generation(generation)) }

    func isLinked(_ path: String, to member: String) throws -> Bool {
        try look(path) == .sealedLink(to: StoreLayout.link(to: member))
    }

    func path(ofMember member: String, in generation: String) -> String { "\(layout.generation(generation))/\(member)" }

    func proveSeal(of generation: String) throws {
        let release = incoming.flatMap { $0.generation == generation ? $0.bytes : nil }
        try store.verify(store.generation(generation), renewing: renews, as: release)
    }

    func note(_ fact: Plan.Fact) { if !facts.contains(fact) { facts.append(fact) } }
}

extension Found {
    init(at path: String) throws {
        guard let facts = try Files.facts(path) else {
            self = .nothing
            return
        }
        switch facts.kind {
        case .file: self = .file(size: facts.size)
        case .directory: self = .directory
        case .link:
            let target = try Files.target(ofLink: path) ?? ""
            self = StoreLayout.isSealed(target) ? .sealedLink(to: target) : .link(to: target)
        case .other: self = .other
        }
    }

    /// The value of the fact `kind`. It omits the size, which changes when an app writes to the file and must not make a plan
    /// stale.
    var description: String {
        switch self {
        case .nothing: "nothing"
        case .file: "file"
        case .sealedLink(let target), .link(let target): "link to \(target)"
        case .directory: "directory"
        case .other: "special file"
        }
    }
}

extension Plan.Fact {
    /// Returns the present value of a fact's field.
    static func read(_ path: String, _ field: String) throws -> Plan.Fact {
        let value: String
        switch field {
        case "kind": value = try Found(at: path).description
        case "target": value = try Files.target(ofLink: path) ?? "nothing"
        case "size": value = try Files.factsThroughLinks(path).map { String($0.size) } ?? "nothing"
        case "modified":
            value =
                try Files.factsThroughLinks(path).map { "\($0.modified.seconds).\($0.modified.nanoseconds)" }
                ?? "nothing"
        case "content":
            if let kind = try Files.factsThroughLinks(path)?.kind, kind != .file {
                value = "\(kind)"
                break
            }
            value = try Files.read(path, limit: Manifest.largest).map { try Generation.digest(of: $0) } ?? "nothing"
        default: value = "unknown"
        }
        return Plan.Fact(path: path, field: field, value: value)
    }
}

extension ReleaseMarker {
    /// Returns the digest of the release's file from which a database was created; nil if the file has no marker.
    package static func digest(in path: String) throws -> String? {
        guard try Files.factsThroughLinks(path)?.kind == .file else { return nil }
        do {
            return try NonInvasiveReader.into(path) { connection in
                guard try connection.int(isThere) == 1, case .text(let digest)? = try connection.scalar(digest) else {
                    return nil
                }
                return digest
            }
        } catch let error as MoultError where error.code == .databaseCorrupt { return nil }
    }
}
