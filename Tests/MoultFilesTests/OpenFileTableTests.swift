import MoultLibc
import TestSupport
import Testing

@testable import MoultFiles

/// The table of the files that other processes have open.
@Suite struct OpenFileTableTests {
    private let scratch: Scratch
    private let path: String

    init() throws {
        scratch = try Scratch()
        path = try scratch.write("file", "x")
    }

    /// Starts a process that opens the files, each twice, and waits.
    private func holder(_ paths: String...) throws -> Program {
        let program = try Program(
            [
                "python3", "-u", "-c",
                """
                import sys
                files = [open(path) for path in sys.argv[1:] for _ in range(2)]
                print("ready")
                sys.stdin.readline()
                """,
            ] + paths)
        try #require(program.line() == "ready")
        return program
    }

    /// Returns the entries of files in the scratch directory.
    private func entries() throws -> [OpenFileTable.Entry] {
        try OpenFileTable.read { _, path in path().hasPrefix(scratch.path) }.entries
    }

    @Test func `a file is listed once for each process that has it open`() throws {
        let other = try scratch.write("other", "y")
        let (first, second) = (try holder(path, other), try holder(path))
        let found = try entries()
        #expect(
            Set(found.map { "\($0.pid) \($0.path)" }) == [
                "\(first.pid) \(path)", "\(first.pid) \(other)", "\(second.pid) \(path)",
            ])
        #expect(found.count == 3)
        let facts = try #require(try Files.facts(path))
        #expect(found.allSatisfy { $0.path == other || $0.facts.isSameFile(facts) })
        second.closeInput()
        second.wait()
        #expect(try entries().allSatisfy { $0.pid == first.pid })
    }

    @Test func `only wanted files are listed`() throws {
        let other = try scratch.write("other", "y")
        let program = try holder(path, other)
        let facts = try #require(try Files.facts(other))
        let found = try OpenFileTable.read { file, _ in file.isSameFile(facts) }.entries
        #expect(found.map(\.pid) == [program.pid])
        #expect(found.map(\.path) == [other])
    }

    @Test func `files that only this process has open are not listed`() throws {
        let descriptor = try Descriptor(path, .read)
        #expect(try entries().isEmpty)
        _ = try descriptor.facts()
    }

    @Test func `a deleted file is listed with a mark`() throws {
        let program = try holder(path)
        try Files.remove(path)
        let found = try entries()
        #expect(found.map(\.path) == ["\(path) (deleted)"])
        #expect(found.map(\.pid) == [program.pid])
    }
}
