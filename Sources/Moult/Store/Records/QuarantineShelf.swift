package import MoultBasics
internal import MoultFiles
package import StepKit

package struct QuarantineRecord: Sendable, Equatable {
    package static let fileName = "set.json"
    /// The database with the rows of a damaged one, the report about them, and the directory for reading them again.
    static let (salvaged, salvageReport) = (Staging.salvagedRows, Staging.salvageReport)
    static let salvageScratch = "salvage.tmp"
    /// The database of a set while rows of another set are added.
    static let stagedRows = "rows.new"

    /// Returns the name that a set gives to the file of a path. A set has files of moult, which use some names.
    static func keptName(of path: String) -> String {
        let name = Files.name(of: path)
        let own = [
            fileName, Files.name(of: Files.staged(fileName)), salvaged, salvageReport, salvageScratch, stagedRows,
        ]
        return own.contains(name) ? "kept-\(name)" : name
    }

    var keptName: String { Self.keptName(of: path) }

    package struct Owner: Sendable, Equatable {
        package var user: Int
        package var group: Int
        package var mode: Int

        init(user: Int, group: Int, mode: Int) { (self.user, self.group, self.mode) = (user, group, mode) }
        init(_ facts: FileFacts) { (user, group, mode) = (Int(facts.owner), Int(facts.group), Int(facts.mode)) }
    }

    package var database: String
    package var kind: Database.Kind
    package var path: String
    package var why: String
    package var reason: KeptReason
    package var time: Timestamp
    /// The release that the content is from; empty if it is not from a release.
    package var release: String
    package var owner: Owner?
    /// The number of the set in its quarantine, which gives the order of the sets even if the clock is set back.
    package var number: Int?
    /// In the set of an undo, the number of the set that was restored.
    package var restored: Int?
    /// For each table, the number of rows that the new content does not have; nil if the rows were not counted.
    package var rows: [SQLName: Int]?
    /// Whether the set has only the rows that the new content does not have, because nothing else differed.
    package var isRows = false

    /// Returns the record of a file that recovery found at the path of a database: the old database, or one that another program
    /// has put there.
    package static func leftBehind(at path: String) -> Self {
        Self(
            database: Files.name(of: path), kind: .user, path: path, why: leftBehindReason, reason: .replaced,
            release: "")
    }

    private static let leftBehindReason = "an interrupted update left the file behind"
    var isLeftBehind: Bool { why == Self.leftBehindReason }

    package var json: JSON {
        .record([
            "quarantine": 1, "database": database, "kind": kind.rawValue, "path": path, "why": why,
            "reason": reason.rawValue, "time": time.description, "release": release, "number": number,
            "restored": restored,
            "owner": owner.map {
                JSON.record(["uid": $0.user, "gid": $0.group, "mode": "0" + String($0.mode, radix: 8)])
            }, "rows": rowsJSON, "rowsOnly": isRows ? true : nil,
        ])
    }

    fileprivate var rowsJSON: JSON? {
        rows.map { .object($0.sorted { $0.key < $1.key }.map { .init($0.key.text, .size($0.value)) }) }
    }

    package init(
        database: String, kind: Database.Kind, path: String, why: String, reason: KeptReason,
        time: Timestamp = .now, release: String
    ) {
        (self.database, self.kind, self.path) = (database, kind, path)
        (self.why, self.reason, self.time, self.release) = (why, reason, time, release)
    }

    /// Nil if the record is missing or cannot be parsed: then the content counts as user data.
    package init?(in directory: String) throws {
        guard let bytes = try Files.read("\(directory)/\(Self.fileName)", limit: 1 << 20),
            let json = try? JSON(parsing: bytes, source: directory), let database = json["database"]?.string,
            let kind = json["kind"]?.string.flatMap({ Database.Kind(rawValue: $0) }), let path = json["path"]?.string,
            let time = json["time"]?.string.flatMap({ Timestamp($0) })
        else { return nil }
        let reason = json["reason"]?.string.flatMap { KeptReason(rawValue: $0) }
        self.init(
            database: database, kind: kind, path: path, why: json["why"]?.string ?? "",
            reason: reason ?? (kind.isDisposable ? .unfitCache : .reset), time: time,
            release: json["release"]?.string ?? "")
        if let owner = json["owner"], let user = owner["uid"]?.integer, let group = owner["gid"]?.integer,
            let mode = owner["mode"]?.string.flatMap({ Int($0, radix: 8) })
        {
            self.owner = Owner(user: Int(user), group: Int(group), mode: mode)
        }
        if let counts = json["rows"]?.members {
            rows = Dictionary(counts.map { (SQLName($0.name), Self.count($0.value) ?? 0) }) { first, _ in first }
        }
        number = json["number"].flatMap(Self.count)
        isRows = json["rowsOnly"]?.bool ?? false
        restored = json["restored"].flatMap(Self.count)
    }

    /// Returns a count that a set can have, so that sums of counts cannot overflow; nil for any other value. A database has at
    /// most 2^48 bytes.
    private static func count(_ json: JSON) -> Int? {
        json.integer.flatMap { (0...1 << 47).contains($0) ? Int($0) : nil }
    }

    /// Writes the record. A set without a number gets one that is higher than all others in its quarantine.
    package func write(to directory: String) throws {
        var record = self
        record.number =
            try number ?? Self(in: directory)?.number ?? Self.highestNumber(in: Files.directory(of: directory)) + 1
        try Files.replace("\(directory)/\(Self.fileName)", with: Array(record.json.pretty.utf8))
    }

    /// Returns the path of a new set: the wanted one or, if that exists, one with a number, which ends with the database's name, too.
    func freeDirectory(_ wanted: String) throws -> String {
        let stem = wanted.hasSuffix("-\(database)") ? String(wanted.dropLast(database.count)) : "\(wanted)-"
        var (free, number) = (wanted, 2)
        while try Files.facts(free) != nil { (free, number) = ("\(stem)\(number)-\(database)", number + 1) }
        return free
    }

    static func makeParents(of set: String) throws {
        let above = Files.directory(of: set)
        for directory in [Files.directory(of: above), above] { try Files.ensureDirectory(directory) }
    }

    /// Syncs a set and the directories above it, which may have been created for it.
    static func sync(_ set: String, levels: Int) throws {
        var changed = set
        for _ in 0..<levels {
            try Files.syncDirectory(changed)
            changed = Files.directory(of: changed)
        }
    }

    private static func highestNumber(in quarantine: String) throws -> Int {
        try Files.list(quarantine).compactMap { name in
            let set = "\(quarantine)/\(name)"
            return try Files.facts(set)?.kind == .directory ? Self(in: set)?.number : nil
        }.max() ?? 0
    }
}

/// The sets in the quarantine of the store and of its caches.
package struct QuarantineShelf {
    let layout: StoreLayout
    package let settings: Settings

    package init(layout: StoreLayout, settings: Settings) { (self.layout, self.settings) = (layout, settings) }

    package struct Set: Sendable, Equatable {
        package let directory: String
        /// Nil without a readable record: then the content counts as user data.
        package let record: QuarantineRecord?
        package let size: Int
        let hasMainFile: Bool
        package let since: Timestamp
        /// When the directory was completed, to order sets of the same second.
        fileprivate let nanoseconds: Int
        fileprivate var age: (Int, Int, Int, String) { (record?.number ?? 0, since.seconds, nanoseconds, directory) }
        package var id: String { Files.name(of: directory) }

        /// Whether the content can be recreated; any other content is user data or app data.
        package var isCache: Bool {
            record.map { $0.kind.isDisposable && ![.takenOver, .foreign].contains($0.reason) } ?? false
        }

        /// Whether the set has rows that are missing from the new content, or was kept for other content, such as a view; true
        /// if the rows were not counted.
        package var hasContent: Bool {
            guard let record, let rows = record.rows, rows.values.allSatisfy({ $0 == 0 }) else { return true }
            return [.replaced, .rolledBack, .migrated, .foreign].contains(record.reason)
        }

        /// Whether an update has left rows of the app behind that only the set has, or content whose rows it could not count. What
        /// the operator has set aside, caches, and the old values of migrated rows do not count.
        package var hasUncarriedRows: Bool {
            guard let record, !isCache else { return false }
            switch record.reason {
            case .replaced, .rolledBack: return record.rows.map { $0.values.contains { $0 > 0 } } ?? true
            case .foreign, .takenOver: return record.rows?.values.contains { $0 > 0 } ?? false
            case .migrated, .reset, .unfitCache, .undone, .restored, .changed: return false
            }
        }

        package var file: String? { record.map { "\(directory)/\($0.keptName)" } }

        package var json: JSON {
            .record([
                "id": id, "database": record?.database, "kind": record?.kind.rawValue, "path": record?.path,
                "release": record?.release, "reason": record?.reason.rawValue, "why": record?.why,
                "time": since.description, "size": size, "rows": record?.rowsJSON,
                "rowsOnly": record?.isRows == true ? true : nil, "directory": directory, "file": file,
            ])
        }

        /// Returns the sentence shown after an update: what was kept, and how to see it.
        package func keptText(_ storeWords: [String]) -> Advice {
            let rows = (record?.rows ?? [:]).values.reduce(0, +)
            let lost = "\(counted(rows, "row")) that the new content does not have"
            var (kept, more) = ("the old database is", rows == 0 ? "" : ", with \(lost)")
            if !hasMainFile {
                kept = "sidecars that do not belong to the database any more are"
            } else if record?.isLeftBehind == true {
                kept = "a file that was at the path of a database is"
            } else if record?.reason == .changed {
                kept = "the read-only file, which a program had changed, is"
            }
            if rows > 0, record?.reason == .migrated { more = ", with the old values of \(counted(rows, "row"))" }
            if record?.isRows == true { (kept, more) = ("\(lost) \(rows == 1 ? "is" : "are")", "") }
            return "\(record?.database ?? id): \(kept) in quarantine\(more); see it with: "
                + "\(run: ["moult", "quarantine"] + storeWords)"
        }
    }

    package func sets() throws -> [Set] {
        return try roots.flatMap { root in
            try Files.list(root).filter { !CacheTag.isTag($0) && !$0.hasPrefix(".") }.compactMap {
                try Self.set("\(root)/\($0)")
            }
        }.sorted { $0.age < $1.age }
    }

    package var roots: [String] {
        [layout.quarantine] + (settings.cacheRoot.map { [layout.quarantine(of: "\($0)/x")] } ?? [])
    }

    package func sets(of transaction: String) throws -> [Set] {
        try sets().filter { Files.name(of: $0.directory).hasPrefix("\(transaction)-") }
    }

    /// Returns the set in a directory; nil if the path has no directory.
    package static func set(_ directory: String) throws -> Set? {
        guard let facts = try Files.facts(directory), facts.kind == .directory else { return nil }
        let record = try QuarantineRecord(in: directory)
        let hasMainFile = try record.map { try Files.facts("\(directory)/\($0.keptName)") != nil } ?? true
        return Set(
            directory: directory, record: record, size: try size(of: directory), hasMainFile: hasMainFile,
            since: record?.time ?? Timestamp(seconds: facts.modified.seconds), nanoseconds: facts.modified.nanoseconds)
    }

    /// Returns the size of the files in a set. A directory that was at the path of the database counts with its upper levels:
    /// another user may have made it deeper than any path can be.
    private static func size(of directory: String, levels: Int = 32) throws -> Int {
        try Files.list(directory).reduce(0) { sum, name in
            guard let facts = try Files.facts("\(directory)/\(name)") else { return sum }
            if facts.kind != .directory { return sum + facts.size }
            return levels == 0 ? sum : try sum + size(of: "\(directory)/\(name)", levels: levels - 1)
        }
    }
}
