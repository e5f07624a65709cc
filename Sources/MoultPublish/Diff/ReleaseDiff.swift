package import MoultBasics
import MoultRows
internal import MoultSQLite
internal import StepKit

/// The differences between two releases, or two databases.
package struct ReleaseDiff: Sendable, Equatable {
    package var old: Side
    package var new: Side
    package var databases: [Entry] = []
    package var notes: [String] = []

    package struct Side: Sendable, Equatable {
        package var path: String
        package var kind: Subject.Kind
        package var version: String?
    }

    package enum Entry: Sendable, Equatable {
        case compared(DatabaseDiff)
        /// Only the new side has the database.
        case added(String)
        case removed(String)
        /// The database belongs to the user or can be recreated: a release does not change its content in a store.
        case kept(String)
        /// The files cannot be compared, for this reason.
        case unknown(String, why: String)
    }

    /// Whether any database differs, or could not be compared. Other fields of a manifest, such as its version, do not count.
    package var differs: Bool {
        databases.contains { entry in
            switch entry {
            case .compared(let diff): diff.differs
            case .added, .removed, .unknown: true
            case .kept: false
            }
        }
    }

    package mutating func removeSamples() {
        databases = databases.map { entry in
            guard case .compared(var database) = entry else { return entry }
            for index in database.tables.indices { database.tables[index].samples = [] }
            return .compared(database)
        }
    }

    package var json: JSON {
        .record([
            "differs": differs, "old": old.json, "new": new.json, "databases": databases.map(\.json),
            "notes": notes.unlessEmpty,
        ])
    }
}

extension ReleaseDiff {
    /// Compares the databases of both sides. `names`, if not empty, limits the comparison to these databases.
    package init(
        from old: Subject, to new: Subject, only names: [String] = [], options: DiffOptions = DiffOptions()
    ) throws {
        self.old = Side(path: old.path, kind: old.kind, version: old.manifest?.version.description)
        self.new = Side(path: new.path, kind: new.kind, version: new.manifest?.version.description)
        notes = old.notes + new.notes
        for (name, was, now) in try Self.pairs(old, new, only: names) {
            if let was = was?.declared, let now = now?.declared { notes += Self.ownership(name, was, now) }
            let isWritableCopy = [was, now].contains { [.user, .cache].contains($0?.declared?.kind) }
            if isWritableCopy, was != nil, now != nil, old.kind == .store || new.kind == .store {
                databases.append(.kept(name))
            } else {
                databases.append(try Self.entry(name, was, now, of: (old.path, new.path), options))
            }
        }
    }

    /// Returns notes on a change of a database's kind or of its preserved rows, and whether stores refuse it without the
    /// operator's consent.
    private static func ownership(_ name: String, _ old: Database, _ new: Database) -> [String] {
        if old.kind != new.kind {
            let change = "\(name): its kind changes from \(old.kind.rawValue) to \(new.kind.rawValue)"
            let isAsked = old.kind.holdsAppData && !new.kind.continues(old.kind)
            return [isAsked ? "\(change); stores refuse that without --take-over \(name)" : change]
        }
        guard new.kind.isReplaced, new.unpreserved == .refuse else { return [] }
        func conditions(_ database: Database) -> [SQLName: Set<String?>] {
            Dictionary(grouping: database.preserve) { SQLName($0.table) }.mapValues { Set($0.map(\.where)) }
        }
        let (before, after) = (conditions(old), conditions(new))
        return before.keys.sorted().compactMap { table in
            guard let now = after[table] else {
                return "\(name): rows of \(table) are no longer preserved; stores with such rows refuse that without "
                    + "--accept-unpreserved"
            }
            guard now != before[table], !now.contains(nil) else { return nil }
            return
                "\(name): the condition of \(table) changes; rows that only the old one selects are carried over once more, "
                + "and the release after this one leaves them in quarantine"
        }
    }

    private static func entry(
        _ name: String, _ old: Subject.Part?, _ new: Subject.Part?, of subjects: (String, String),
        _ options: DiffOptions
    ) throws -> Entry {
        guard let old else { return .added(name) }
        guard let new else { return .removed(name) }
        // Only a read-only database with the same digest counts as the same file: a database that an app writes to may have
        // changed since the release.
        if let was = old.declared, let now = new.declared, was.sha256 == now.sha256, was.kind.isSealed {
            var same = DatabaseDiff(name: name, old: old.path ?? was.member, new: new.path ?? now.member)
            same.isSameFile = true
            return .compared(same)
        }
        guard let oldPath = old.path else { return .unknown(name, why: "the old file is not available") }
        guard let newPath = new.path else { return .unknown(name, why: "the new file is not available") }
        return .compared(
            try DatabaseComparison(name, old: oldPath, new: newPath, of: subjects, options: options).diff())
    }

    /// Pairs databases with the same name, or the only database of each side.
    private static func pairs(_ old: Subject, _ new: Subject, only names: [String]) throws -> [(
        String, Subject.Part?, Subject.Part?
    )] {
        for name in names where old.part(name) == nil && new.part(name) == nil { throw new.unknown(name) }
        if old.kind == .database || new.kind == .database { return [try single(old, new, only: names)] }
        var pairs = new.parts.map { ($0.name, old.part($0.name), Subject.Part?.some($0)) }
        pairs += old.parts.filter { part in new.part(part.name) == nil }.map { ($0.name, $0, nil) }
        if names.isEmpty { return pairs }
        let wanted = names.compactMap { (new.part($0) ?? old.part($0))?.name }
        return pairs.filter { wanted.contains($0.0) }
    }

    /// Pairs the single database of one side with the only database of the other side, or with the one that `names` selects or
    /// that has the same name.
    private static func single(
        _ old: Subject, _ new: Subject, only names: [String]
    ) throws -> (String, Subject.Part?, Subject.Part?) {
        func choose(_ subject: Subject, for other: Subject) throws -> Subject.Part {
            if subject.parts.count == 1, let part = subject.parts.first { return part }
            let wanted = subject.kind == .database ? nil : names.first ?? other.parts.first?.name
            if let part = wanted.flatMap(subject.part) { return part }
            throw MoultError(
                .diff, .usage, what: "cannot determine which database of \(subject.path) is meant",
                why: itsNames("database", subject.parts.map(\.name)), now: "Choose one with --database.")
        }
        let (was, now) = (try choose(old, for: new), try choose(new, for: old))
        return (new.kind == .database && old.kind != .database ? was.name : now.name, was, now)
    }
}

extension ReleaseDiff.Side {
    fileprivate var json: JSON { .record(["path": path, "kind": kind.rawValue, "version": version]) }
}

extension ReleaseDiff.Entry {
    fileprivate var json: JSON {
        switch self {
        case .compared(let diff): diff.json
        case .added(let name): .record(["name": name, "change": "added"])
        case .removed(let name): .record(["name": name, "change": "removed"])
        case .kept(let name): .record(["name": name, "change": "kept"])
        case .unknown(let name, let why): .record(["name": name, "change": "unknown", "why": why])
        }
    }
}

extension DatabaseDiff {
    package var json: JSON {
        .record([
            "name": name, "change": differs ? "changed" : "none", "sameFile": isSameFile,
            "properties": properties.map { JSON.record(["name": $0.name, "old": $0.old, "new": $0.new]) },
            "schema": schema.map(\.json), "tables": tables.map(\.json), "pages": pages?.json,
        ])
    }
}

extension SchemaChange {
    fileprivate var json: JSON {
        .record([
            "change": change.rawValue, "kind": kind, "name": name.unlessEmpty, "table": table, "old": old, "new": new,
            "words": words,
        ])
    }
}

extension TableDiff {
    fileprivate var json: JSON {
        .record([
            "name": name, "change": presence == .both ? differs ? "changed" : "none" : presence.rawValue,
            "method": method.name, "key": Array(columns.prefix(keyColumns)), "why": method.why,
            "rowsBefore": rowsBefore, "rowsAfter": rowsAfter, "added": added, "removed": removed, "changed": changed,
            "changedColumns": JSON.object(changedColumns.map { .init($0.name, .size($0.rows)) }), "columns": columns,
            "samples": samples.map(\.json).unlessEmpty,
        ])
    }
}

extension TableDiff.Method {
    fileprivate var name: String {
        switch self {
        case .primaryKey: "primary key"
        case .rowid: "rowid"
        case .content: "content"
        case .index: "index"
        case .counted: "counted"
        case .unread: "unread"
        }
    }
    fileprivate var why: String? { if case .unread(let why) = self { why } else { nil } }
}

extension RowSample {
    fileprivate var json: JSON {
        .record(["change": kind.rawValue, "old": old.map { $0.map(\.json) }, "new": new.map { $0.map(\.json) }])
    }
}

extension SampleValue {
    /// Numbers and complete texts are written as they are. A blob or a truncated text is written as an object with its size in
    /// bytes.
    fileprivate var json: JSON {
        switch self {
        case .null: .null
        case .integer(let number): .integer(number)
        case .real(let number): .number(number)
        case .text(let text, let bytes):
            text.utf8.count == bytes ? .string(text) : .record(["text": text, "bytes": bytes])
        case .blob(let start, let bytes): .record(["blob": hexadecimal(start), "bytes": bytes])
        }
    }
}

extension PageMap {
    fileprivate var json: JSON {
        .record([
            "pageSize": pageSize, "old": oldCount, "new": newCount, "changed": changed, "added": added,
            "removed": removed,
        ])
    }
}

package func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
