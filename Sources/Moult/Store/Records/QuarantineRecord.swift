package import MoultBasics
internal import MoultFiles
package import StepKit

/// The record of a set in quarantine, in a file in the set's directory.
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

    /// The name of the main file in the set.
    var keptName: String { Self.keptName(of: path) }

    /// The original owner, group and mode of the file.
    package struct Owner: Sendable, Equatable {
        package var user: Int
        package var group: Int
        package var mode: Int

        package init(user: Int, group: Int, mode: Int) { (self.user, self.group, self.mode) = (user, group, mode) }

        init(_ facts: FileFacts) {
            self.init(user: Int(facts.owner), group: Int(facts.group), mode: Int(facts.mode))
        }
    }

    package var database: String
    package var kind: Database.Kind
    /// The original path of the file.
    package var path: String
    package var why: String
    package var reason: KeptReason
    package var time: Timestamp
    /// The release that the content is from; empty if it is not from a release.
    package var release: String
    package var owner: Owner?
    /// The number of the set in its quarantine, which gives the order of the sets even if the clock is set back; nil in records
    /// of older versions.
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
        .compact([
            "quarantine": 1, "database": .string(database), "kind": .string(kind.rawValue), "path": .string(path),
            "why": .string(why), "reason": .string(reason.rawValue), "time": .string(time.description),
            "release": .string(release), "number": number.map { .size($0) }, "restored": restored.map { .size($0) },
            "owner": owner.map {
                ["uid": .size($0.user), "gid": .size($0.group), "mode": .string("0" + String($0.mode, radix: 8))]
            },
            "rows": rows.map { rows in
                .object(rows.sorted { $0.key < $1.key }.map { .init($0.key.text, .size($0.value)) })
            },
            "rowsOnly": isRows ? true : nil,
        ])
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
        // Records of the first version have no reason: they exist only for caches and resets.
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

    private static func highestNumber(in quarantine: String) throws -> Int {
        try Files.list(quarantine).compactMap { name in
            let set = "\(quarantine)/\(name)"
            return try Files.facts(set)?.kind == .directory ? Self(in: set)?.number : nil
        }.max() ?? 0
    }
}
