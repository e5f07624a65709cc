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
    /// Reads an archive in the confined process, and returns each member's content. Also checks that members begin and end in turn.
    func unpack(_ name: String, members: [String: Int] = SampleBundle.members) throws -> [String: [UInt8]] {
        try contents {
            try ConfinedArchive(path(name), by: .process(BuiltMoult.path())).read(
                named: name, members: members, onMember: $0)
        }
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

    func reader(_ name: String) throws -> ArchiveReader {
        try ArchiveReader(Descriptor(path(name), .read), kind: ArchiveKind(fileName: name))
    }

    /// Reads an archive that must be refused, and returns the error.
    func refusal(
        _ name: String, members: [String: Int] = SampleBundle.members, _ location: SourceLocation = #_sourceLocation
    ) throws -> MoultError {
        let error = try #require(throws: MoultError.self, sourceLocation: location) {
            try unpack(name, members: members)
        }
        #expect(error.what == "cannot unpack \(path(name))", sourceLocation: location)
        return error
    }
}
