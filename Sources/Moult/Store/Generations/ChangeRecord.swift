package import MoultBasics
internal import MoultFiles
internal import MoultLibc
package import MoultRows
import MoultSQLite
internal import StepKit

/// A record of changed rows, in `.moult/changes`.
/// A reader compares the read-only databases of two generations, which never change, and records the result for the others. Only an
/// update knows what it changed in a shared database, and records that before its announcement. That costs a comparison of the
/// databases, so it does so only in stores whose apps have asked for changed rows before.
package struct ChangeRecord: Equatable {
    let from: String
    let to: String
    /// The update that changed shared databases; nil in the record of a comparison.
    let transaction: String?
    /// The number of changed rows of a table from which on the record has no keys.
    let limit: Int
    package private(set) var databases: [DatabaseChanges]

    package init(
        from: String, to: String, transaction: String?, limit: Int = DatabaseChanges.standardLimit,
        databases: [DatabaseChanges]
    ) { (self.from, self.to, self.transaction, self.limit, self.databases) = (from, to, transaction, limit, databases) }

    private static let largest = 1 << 28

    private static func path(_ from: String, _ to: String, _ layout: StoreLayout) -> String {
        "\(layout.changes)/\(from.suffix(8))-\(to.suffix(8)).json"
    }

    private static func path(ofUpdateIn layout: StoreLayout) -> String { "\(layout.changes)/update.json" }

    package static func isWanted(_ layout: StoreLayout) throws -> Bool {
        try Files.facts(layout.changes)?.kind == .directory
    }

    /// Makes later updates record what they change. Only the owner of the store can do this: other users must leave no files in it.
    package static func want(_ layout: StoreLayout) {
        // A store on a full or read-only file system has no records, and its apps read everything again.
        guard let hidden = try? Files.facts(layout.hidden), hidden.owner == geteuid() else { return }
        try? Files.ensureDirectory(layout.changes)
    }

    /// Returns nil for a missing or damaged record: it only saves work, or says that a reader may keep what it has.
    private static func read(_ path: String) -> ChangeRecord? {
        guard let bytes = try? Files.read(path, limit: largest) else { return nil }
        return try? ChangeRecord(Fields(record: bytes, source: path))
    }

    private init?(_ fields: Fields) throws {
        guard try fields.integer("changes") == 1 else { return nil }
        (from, to) = (try fields.string("from"), try fields.string("to"))
        transaction = try fields.optionalString("transaction")
        limit = try fields.integer("limit")
        databases = try fields.objects("databases").map { try DatabaseChanges($0) }
    }

    private var json: JSON {
        .record([
            "changes": 1, "from": from, "to": to, "transaction": transaction, "limit": limit,
            "databases": databases.map(\.json),
        ])
    }

    /// Records what an update changed in shared databases. Not synced: after a power failure, readers read everything again.
    package func write(ofUpdateIn layout: StoreLayout) throws { try write(Self.path(ofUpdateIn: layout)) }
    private func write(_ path: String) throws { try Files.replace(path, with: Array(json.line.utf8), durable: false) }

    /// Removes the records of generations that no longer exist. Needs the store's lock.
    package static func removeOld(_ layout: StoreLayout) throws {
        guard try Files.facts(layout.changes)?.kind == .directory else { return }
        let digests = Set(try Generation.names(layout).map { String($0.suffix(8)) })
        for name in try Files.list(layout.changes) where name != "update.json" {
            let parts = name.split(separator: ".", maxSplits: 1)[0].split(separator: "-").map(String.init)
            if parts.count == 2, name.hasSuffix(".json"), parts.allSatisfy(digests.contains) { continue }
            // Only regular files are removed, because moult creates nothing else here.
            if try Files.facts("\(layout.changes)/\(name)")?.kind == .file {
                try Files.remove("\(layout.changes)/\(name)")
            }
        }
    }

    package static func changes(
        of databases: [String], since previous: String?, in generation: String, _ layout: StoreLayout, limit: Int
    ) throws -> [DatabaseChanges] {
        let new = try Generation.load(generation, in: layout)
        // Nothing can be compared with a generation that was removed, or whose manifest is damaged.
        let old = previous.flatMap { try? Generation.load($0, in: layout) }
        let update = try updateRecord(since: previous, in: generation, layout)
        let compared = try old.map { try Comparison(old: $0, new: new, layout: layout, limit: limit) }
        return try databases.map { name in
            guard let after = new.manifest.database(name) else {
                return DatabaseChanges(name, reload: "it was removed")
            }
            if let known = update?.databases.first(where: { $0.name == name }) { return known.limited(to: limit) }
            guard after.kind.isSealed else { return DatabaseChanges(name, reload: "its changes were not recorded") }
            guard let compared else { return DatabaseChanges(name, reload: "the earlier release was removed") }
            return try compared.changes(of: name)
        }
    }

    /// Returns what the last update changed in shared databases, if that is all that the reader has not seen.
    private static func updateRecord(
        since previous: String?, in generation: String, _ layout: StoreLayout
    ) throws -> ChangeRecord? {
        guard let record = read(path(ofUpdateIn: layout)), record.from == previous, record.to == generation,
            let last = try Announcement.read(layout), last.generation == generation,
            last.transaction == record.transaction
        else { return nil }
        return record
    }

    private final class Comparison {
        let old: Generation
        let new: Generation
        let layout: StoreLayout
        let limit: Int
        private var known: ChangeRecord

        init(old: Generation, new: Generation, layout: StoreLayout, limit: Int) throws {
            (self.old, self.new, self.layout, self.limit) = (old, new, layout, limit)
            let found = read(path(old.name, new.name, layout))
            known = ChangeRecord(
                from: old.name, to: new.name, transaction: nil, limit: max(limit, DatabaseChanges.standardLimit),
                databases: [])
            if let found, found.from == old.name, found.to == new.name, found.limit >= limit { known = found }
        }

        func changes(of name: String) throws -> DatabaseChanges {
            if let found = known.databases.first(where: { $0.name == name }) { return found.limited(to: limit) }
            let found = try compare(name)
            known.databases.append(found)
            try record()
            return found.limited(to: limit)
        }

        private func compare(_ name: String) throws -> DatabaseChanges {
            let (after, before) = (try new.database(name), old.manifest.database(name))
            guard let before else { return DatabaseChanges(name, reload: "the earlier release does not have it") }
            guard before.kind.isSealed else { return DatabaseChanges(name, reload: "its kind has changed") }
            for (generation, database) in [(old, before), (new, after)] where try !isUnchanged(database, generation) {
                return DatabaseChanges(
                    name, reload: "its file of release \(generation.manifest.version) is not there any more")
            }
            let one = try Connection(path: old.path(before.member), access: .immutable)
            let other = try Connection(path: new.path(after.member), access: .immutable)
            let tables = try ChangedRows.between(one, other, limit: known.limit)
            try one.close()
            try other.close()
            return DatabaseChanges(name, tables: tables)
        }

        /// Returns whether a generation still has the file of a database. A file outside the generations may have been replaced.
        private func isUnchanged(_ database: Database, _ generation: Generation) throws -> Bool {
            guard let entry = try generation.seal().entry(database.member) else { return false }
            return switch try entry.standing(of: generation.path(database.member)) {
            case .confirmed: true
            case .unconfirmed: database.place == .generation
            case .damaged: false
            }
        }

        /// Records the comparison for other readers. Only the owner of the store does this: other users must leave no files in it.
        private func record() throws {
            guard let directory = try Files.facts(layout.changes), directory.kind == .directory,
                directory.owner == geteuid()
            else { return }
            do { try known.write(path(old.name, new.name, layout)) } catch is MoultError {
                // The record only saves work, and the disk may be full or read-only.
            }
        }
    }
}

package struct DatabaseChanges: Sendable, Equatable {
    package let name: String
    package private(set) var tables: [ChangedRows] = []
    /// Why a reader must read the whole database again; nil if `tables` is complete.
    package private(set) var reload: String?

    /// The number of changed rows of a table from which on a reader must read the whole table again, unless it says otherwise.
    package static let standardLimit = 10_000

    package init(_ name: String, tables: [ChangedRows]) { (self.name, self.tables) = (name, tables) }
    package init(_ name: String, reload: String) { (self.name, self.reload) = (name, reload) }

    func limited(to limit: Int) -> DatabaseChanges {
        var changes = self
        changes.tables = tables.map { $0.limited(to: limit) }
        return changes
    }

    package var json: JSON {
        .record(["name": name, "reload": reload, "tables": reload == nil ? tables.map(\.json) : nil])
    }

    init(_ fields: Fields) throws {
        name = try fields.string("name")
        reload = try fields.optionalString("reload")
        if reload == nil { tables = try fields.objects("tables").map { try ChangedRows($0) } }
    }
}

extension ChangedRows {
    fileprivate var json: JSON {
        func keys(_ rows: [[Value]]) -> JSON { .array(rows.map { .array($0.map(\.json)) }) }
        if let reload { return .record(["name": table, "reload": reload]) }
        return .record([
            "name": table, "key": key, "inserted": keys(inserted), "updated": keys(updated), "deleted": keys(deleted),
        ])
    }

    fileprivate init(_ fields: Fields) throws {
        let name = try fields.string("name")
        if let reload = try fields.optionalString("reload") {
            self.init(name, reload: reload)
            return
        }
        let key = try fields.optionalStrings("key") ?? []
        func rows(_ field: String) throws -> [[Value]] {
            try (fields.json(field)?.array ?? []).map { row in
                let values = (row.array ?? []).compactMap { Value(json: $0) }
                guard values.count == key.count else { throw fields.fail(field, "must be a list of keys") }
                return values
            }
        }
        self.init(
            name, key: key, inserted: try rows("inserted"), updated: try rows("updated"), deleted: try rows("deleted"))
    }
}
