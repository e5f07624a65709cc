internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Warnings about a release: facts that the operator should know although they do not prevent the update.
enum PlanWarnings {
    static func of(_ manifest: Manifest, in context: PlanContext) throws -> [Advice] {
        var warnings: [Advice] = []
        if let expires = manifest.expires, expires < context.policy.now {
            warnings.append("release \(manifest.version) expired on \(expires)")
        }
        return try warnings + misfits(manifest, in: context) + unused(manifest, in: context)
    }

    /// Returns warnings about app data that stays in the store, where the release does not use it.
    private static func unused(_ manifest: Manifest, in context: PlanContext) throws -> [Advice] {
        guard context.purpose != .reset, let installed = context.installed else { return [] }
        let used = Set(manifest.databases.map { context.path(of: $0) })
        func hasFile(_ database: Database) throws -> Bool {
            try Files.factsThroughLinks(context.store.path(database.path))?.kind == .file
        }
        var seen = used
        return try installed.databases.filter {
            try $0.holdsAppData && seen.insert($0.path).inserted && hasFile($0)
        }.map { database in
            let next = manifest.database(database.name).map { context.store.path(context.path(of: $0)) }
            let rows = next.map { ", and its rows are not carried over to \($0)" } ?? ""
            return "\(context.store.path(database.path)) stays, but release \(manifest.version) does not use it\(rows)"
        }
    }

    static func withdrawal(of manifest: Manifest, in feeds: [String?]) -> [Advice] {
        guard let reason = withdrawalReason(of: manifest.version, product: manifest.product, in: feeds) else {
            return []
        }
        return ["release \(manifest.version) was withdrawn by its publisher: \(reason)"]
    }

    /// Returns why the publisher has withdrawn a release, according to a feed on this machine: the last one that the store has
    /// seen, or one next to the manifest. This is only informative, so an unreadable feed is ignored.
    static func withdrawalReason(of version: Version, product: String, in feeds: [String?]) -> String? {
        for path in feeds.compactMap(\.self) {
            guard let bytes = try? Files.read(path, limit: Feed.largest),
                let feed = try? Feed(parsing: bytes, source: path),
                feed.product == product, let reason = feed.release(version)?.withdrawn
            else { continue }
            return reason
        }
        return nil
    }

    /// Returns warnings about the schemas of user databases. A rollback is the way out of a failing release, so a schema that
    /// does not fit does not prevent it.
    private static func misfits(_ manifest: Manifest, in context: PlanContext) throws -> [Advice] {
        guard context.purpose == .rollback else { return [] }
        return try manifest.databases.filter(\.holdsAppData).compactMap {
            try misfit($0, manifest, context) ?? takenOver($0, manifest, context)
        }
    }

    private static func misfit(_ database: Database, _ manifest: Manifest, _ context: PlanContext) throws -> Advice? {
        guard database.kind.isMigrated, database.schemaOwner == .release else { return nil }
        let place = context.store.path(database.path)
        let template = context.store.path(ofMember: database.member, in: context.generation)
        guard try Files.factsThroughLinks(place)?.kind == .file, try Files.facts(template)?.kind == .file,
            let lack = try lack(of: place, template)
        else { return nil }
        return "\(place) does not fit release \(manifest.version), and the app may fail: \(lack). "
            + "Earlier content may be in quarantine: \(moult: "quarantine")"
    }

    /// Returns a warning if a release took over the file of this database: its data is then in quarantine.
    private static func takenOver(_ database: Database, _ manifest: Manifest, _ context: PlanContext) -> Advice? {
        guard let installed = context.installed,
            let taker = installed.databases.first(where: { context.path(of: $0) == database.path }),
            taker.kind != database.kind
        else { return nil }
        return "release \(installed.version) has a \(taker.kind.rawValue) database at "
            + "\(context.store.path(database.path)), so the \(database.kind.rawValue) database of release \(manifest.version) lacks its "
            + "earlier data. That data may be in quarantine: \(moult: "quarantine")"
    }

    /// Returns a sentence about the first part of the release's schema that the file lacks; nil if it lacks none. Also nil if
    /// the file cannot be read now, because the steps report that.
    private static func lack(of place: String, _ template: String) throws -> String? {
        do {
            let expected = try SchemaShape.ofContent(Connection(path: template, access: .immutable))
            return try NonInvasiveReader.into(place) { try SchemaShape.ofContent($0) }.lacks(of: expected).first
        } catch let error as MoultError where error.outcome == .busy || error.code == .databaseCorrupt { return nil }
    }

    /// Returns warnings about consumers of unknown databases: such a name is probably a typo, and the consumer would never be
    /// called.
    static func of(_ consumers: [Consumer], _ manifest: Manifest, _ installed: Manifest?) -> [Advice] {
        consumers.flatMap { consumer in
            (consumer.databases ?? []).filter { manifest.database($0) == nil && installed?.database($0) == nil }.map {
                "the consumer \(consumer.name) is registered for \"\($0)\", which release \(manifest.version) does not have"
            }
        }
    }
}
