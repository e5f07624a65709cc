import MoultArchive
import MoultBasics
import MoultFiles
import MoultSandbox
import TestSupport
import Testing

/// An archive with two members, and the process that reads it: the built command or another program.
struct ArchiveFixture {
    let scratch: Scratch
    let path: String
    let members: [String: Int]

    /// Makes an archive. With more than 2 MiB, the reader of the archive cannot exit before all content is read,
    /// because the shared memory is smaller.
    init(_ name: String = "a.tar.gz", size: Int = 900_000) throws {
        scratch = try Scratch()
        path = scratch.path(name)
        members = ["food.db": size, "notes/1.sql": 20]
        try scratch.must(
            "mkdir -p in/notes; head -c \(size) <(seq 1 800000) > in/food.db; head -c 20 <(seq 1 9) > in/notes/1.sql")
        // `seq` prints only 18 bytes, so the file is extended.
        try scratch.must("truncate -s 20 in/notes/1.sql && cd in && bsdtar -acf ../\(name) food.db notes/1.sql")
    }

    /// Makes a shell script that runs instead of the reader.
    func impostor(_ script: String) throws -> String {
        let program = scratch.path("impostor")
        try Files.replace(program, with: Array("#!/bin/bash\n\(script)\n".utf8), mode: 0o755)
        return program
    }

    /// Reads the archive with the built command or another program, and returns the content.
    func read(
        by program: String? = nil, patience: Int = 20, stop: @escaping @Sendable () throws -> Void = {},
        during: (String) throws -> Void = { _ in }
    ) throws -> [String: [UInt8]] {
        var contents: [String: [UInt8]] = [:]
        try ConfinedArchive(path, by: .process(program ?? BuiltMoult.path()), patience: patience, stop: stop).read(
            named: path, members: members
        ) { name, part in
            if case .bytes(let bytes) = part { contents[name, default: []] += bytes }
            try during(name)
        }
        return contents
    }

    /// Reads the archive with a script in place of the reader; the result must be refused. Returns the error.
    func refusal(by script: String, patience: Int = 20) throws -> MoultError {
        let program = try impostor(script)
        return try #require(throws: MoultError.self) { try read(by: program, patience: patience) }
    }
}
