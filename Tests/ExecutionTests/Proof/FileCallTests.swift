import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Facts are read once: each database more costs a command only a few system calls with a path.
@Suite struct FileCallTests {
    private let scratch: Scratch
    private let moult: String

    init() throws { (scratch, moult) = (try Scratch(), try BuiltMoult.path()) }

    /// Creates a store with a number of shared databases, and the manifest of the next release.
    private func store(_ count: Int) throws -> (path: String, next: String) {
        let directory = try scratch.directory("releases\(count)")
        var manifests: [String] = []
        for version in 1...2 {
            var databases: [JSON.Member] = []
            for number in 0..<count {
                let sql = "CREATE TABLE t\(number)(v); INSERT INTO t\(number) VALUES(\(version))"
                try Shell.must(["sqlite3", "\(directory)/\(version)-\(number).db", sql])
                databases.append(
                    .init(
                        "d\(number)",
                        [
                            "kind": "shared", "source": .string("\(version)-\(number).db"), "preserve": [],
                            "attach": ["group": .string("g\(number / 8)")],
                        ]))
            }
            let draft: JSON = [
                "manifest": 1, "product": "org.example.test", "version": .string("\(version).0.0"),
                "databases": .object(databases),
            ]
            try Files.writeNew(Array(draft.pretty.utf8), to: "\(directory)/v\(version).draft.json")
            try Shell.must([moult, "pack", "-q", "\(directory)/v\(version).draft.json", "-o", directory])
            manifests.append("\(directory)/test-\(version).0.0.json")
        }
        let path = scratch.path("store\(count)")
        try Shell.must([moult, "init", path, "--product", "org.example.test"])
        try Shell.must([moult, "apply", manifests[0], "--store", path])
        return (path, manifests[1])
    }

    /// Returns the calls with a path that a command makes.
    private func calls(_ words: String...) throws -> [Substring] {
        let log = scratch.path("calls")
        let ended = try Shell.run(["strace", "-f", "-qq", "-e", "trace=%file", "-o", log, moult] + words)
        #expect(ended.status == 0, "\(ended)")
        return String(decoding: try Files.read(log, limit: 1 << 26) ?? [], as: UTF8.self).split(separator: "\n")
    }

    /// SQLite and its path make about 25 of the calls of `verify`: each directory of the path is looked at twice, and before each
    /// transaction at the sidecars.
    @Test(arguments: [("status", 4), ("verify", 72)]) func `looking at one more database`(_ verb: String, _ most: Int)
        throws
    {
        let (few, many) = (try store(2).path, try store(10).path)
        let one = Double(try calls(verb, "--store", many).count - calls(verb, "--store", few).count) / 8
        #expect(one <= Double(most), "\(one)")
    }

    @Test func `apply opens the manifest once`() throws {
        let (path, next) = try store(2)
        let opened = try calls("apply", next, "--store", path).filter {
            $0.contains("open") && $0.contains("\"\(next)\"")
        }
        #expect(opened.count == 1, "\(opened.joined(separator: "\n"))")
    }
}
