import MoultArchive
import MoultBasics
import MoultFiles
import MoultSandbox
import TestSupport
import Testing

/// The members of the sample release.
enum SampleBundle {
    static let food = (0..<300_000).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 13) }
    static let user = Array("an empty template".utf8)
    static let notes = Array("CREATE TABLE note (text);\n".utf8)
    static let members = [
        "food.db": food.count, "user.db": user.count, "migrations/user/0002-notes.sql": notes.count,
    ]
    static let contents = ["food.db": food, "user.db": user, "migrations/user/0002-notes.sql": notes]

    /// Writes the files of the sample for a packing program.
    static func write(to scratch: Scratch) throws {
        try #require(scratch.run("mkdir -p in/migrations/user") == 0)
        for (name, bytes) in contents { try scratch.write("in/\(name)", bytes) }
    }
}

extension Scratch {
    /// Reads an archive with the strict reader and returns each member's content.
    ///
    /// Also checks that members begin and end in turn, and that the confined process gives the same result.
    func unpack(
        _ name: String, as kind: ArchiveKind? = nil, members: [String: Int] = SampleBundle.members
    ) throws -> [String: [UInt8]] {
        let result = Result {
            try contents { try reader(name, as: kind).read(members: members, onMember: $0) }
        }
        // The confined process determines the format from the name.
        guard kind == nil else { return try result.get() }
        let confined = Result {
            try contents {
                try ConfinedArchive(path(name), by: .process(BuiltMoult.path())).read(
                    named: name, members: members, onMember: $0)
            }
        }
        switch (result, confined) {
        case (.success(let one), .success(let other)): #expect(one == other)
        case (.failure(let one), .failure(let other)): #expect("\(one)" == "\(other)")
        default: Issue.record("here: \(result), confined: \(confined)")
        }
        return try result.get()
    }

    private func contents(_ read: ((String, ArchiveReader.Part) throws -> Void) throws -> Void) throws -> [String:
        [UInt8]]
    {
        var contents: [String: [UInt8]] = [:]
        var current: (name: String, bytes: [UInt8])?
        try read { name, part in
            switch part {
            case .begin:
                #expect(current == nil && contents[name] == nil)
                current = (name, [])
            case .bytes(let bytes):
                #expect(current?.name == name)
                current?.bytes += bytes
            case .end:
                contents[name] = current?.bytes
                current = nil
            }
        }
        return contents
    }

    func reader(_ name: String, as kind: ArchiveKind? = nil) throws -> ArchiveReader {
        try ArchiveReader(Descriptor(path(name), .read), kind: kind ?? ArchiveKind(fileName: name))
    }

    /// Reads an archive that the strict reader must refuse, and returns the error.
    func refusal(
        _ name: String, as kind: ArchiveKind? = nil, members: [String: Int] = SampleBundle.members,
        _ location: SourceLocation = #_sourceLocation
    ) throws -> MoultError {
        let error = try #require(throws: MoultError.self, sourceLocation: location) {
            try unpack(name, as: kind, members: members)
        }
        #expect(error.what == "cannot unpack \(path(name))", sourceLocation: location)
        return error
    }
}
