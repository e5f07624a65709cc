package import MoultBasics
internal import MoultFiles
package import StepKit

/// What is known of a set in quarantine: it lies beside the files, so that they can be told apart later.
package struct QuarantineLabel: Sendable, Equatable {
    package static let fileName = "set.json"

    package var database: String
    package var kind: Database.Kind
    /// Where it was.
    package var path: String
    package var why: String
    package var time: Timestamp
    package var release: String

    package var json: JSON {
        [
            "quarantine": 1, "database": .string(database), "kind": .string(kind.rawValue), "path": .string(path),
            "why": .string(why), "time": .string(time.description), "release": .string(release),
        ]
    }

    package init(
        database: String, kind: Database.Kind, path: String, why: String, time: Timestamp = .now, release: String
    ) {
        (self.database, self.kind, self.path) = (database, kind, path)
        (self.why, self.time, self.release) = (why, time, release)
    }

    /// Nil if there is no label, or one that cannot be understood: then nobody knows whose data it is.
    package init?(in directory: String) throws {
        guard let bytes = try Files.read("\(directory)/\(Self.fileName)", limit: 1 << 20),
            let json = try? JSON(parsing: bytes, source: directory), let database = json["database"]?.string,
            let kind = json["kind"]?.string.flatMap({ Database.Kind(rawValue: $0) }), let path = json["path"]?.string,
            let time = json["time"]?.string.flatMap({ Timestamp($0) })
        else { return nil }
        self.init(
            database: database, kind: kind, path: path, why: json["why"]?.string ?? "", time: time,
            release: json["release"]?.string ?? "")
    }

    func write(to directory: String) throws {
        try Files.replace("\(directory)/\(Self.fileName)", with: Array(json.pretty.utf8))
    }
}
