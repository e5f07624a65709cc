package import MoultBasics
package import MoultFiles

/// What a sealed file was when it was proven: by this it is known again without reading it.
///
/// Permissions do not bind root, so before a generation is trusted its files' inode, size and time of change are
/// compared with this record.
package struct Seal: Sendable, Equatable {
    package static let fileName = "seal.json"
    package static let format = 1

    package struct Entry: Sendable, Equatable {
        package let member: String
        package let sha256: String
        package let size: Int
        package let inode: UInt64
        package let changed: FileFacts.Moment

        package init(member: String, sha256: String, facts: FileFacts) {
            self.init(member: member, sha256: sha256, size: facts.size, inode: facts.inode, changed: facts.changed)
        }

        init(member: String, sha256: String, size: Int, inode: UInt64, changed: FileFacts.Moment) {
            self.member = member
            self.sha256 = sha256
            self.size = size
            self.inode = inode
            self.changed = changed
        }

        /// What differs between the record and a file; nil if it is the very one.
        package func difference(to facts: FileFacts?) -> String? {
            guard let facts else { return "is not there" }
            if facts.kind != .file { return "is no regular file" }
            if facts.size != size { return "has \(facts.size) bytes instead of \(size)" }
            if facts.inode != inode {
                return "is another file than the one that was proven (inode \(facts.inode), was \(inode))"
            }
            // An adopted file has no time: taking it out of its place changed it.
            if changed.seconds != 0, facts.changed != changed { return "was changed after it was sealed" }
            return nil
        }
    }

    package var entries: [Entry]
    /// The serial of the feed by which the release came; nil if it came otherwise.
    package var feedSerial: Int?
    package init(entries: [Entry], feedSerial: Int? = nil) { (self.entries, self.feedSerial) = (entries, feedSerial) }

    /// With the times of files that have got or lost another name since.
    func counting(_ links: [LinkedFiles.Record]) -> Seal {
        Seal(
            entries: entries.map { entry in
                guard let link = links.first(where: { $0.inode == entry.inode && $0.sha256 == entry.sha256 }) else {
                    return entry
                }
                return Entry(
                    member: entry.member, sha256: entry.sha256, size: entry.size, inode: entry.inode,
                    changed: link.changed)
            }, feedSerial: feedSerial)
    }

    package func entry(_ member: String) -> Entry? { entries.first { $0.member == member } }

    package var json: JSON {
        .compact([
            "seal": .size(Self.format), "feedSerial": feedSerial.map { .size($0) },
            "files": .array(
                entries.map {
                    [
                        "member": .string($0.member), "sha256": .string($0.sha256), "size": .size($0.size),
                        "inode": .integer(Int64(bitPattern: $0.inode)),
                        "changed": $0.changed.json,
                    ]
                }),
        ])
    }

    package init(parsing bytes: [UInt8], source: String) throws {
        let fields = try Fields(JSON(parsing: bytes, source: source)) { place, why, _ in
            MoultError(.generation, what: "\(source): \(place) \(why)")
        }
        feedSerial = try fields.optionalCount("feedSerial")
        entries = try fields.objects("files").map { file in
            Entry(
                member: try file.string("member"), sha256: try file.string("sha256"), size: try file.integer("size"),
                inode: UInt64(bitPattern: Int64(try file.integer("inode"))),
                changed: try file.moment("changed"))
        }
    }
}
