import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Sealed files are identified by digests; inode, size and times only save reading a file again.
@Suite(.tags(.thorough)) struct CopiedSealTests {
    let releases: CopiedStore.Releases
    let scratch: Scratch
    let original: CopiedStore
    private let copy: CopiedStore

    init() throws {
        (releases, scratch) = (try CopiedStore.Releases(), try Scratch())
        original = try CopiedStore.make(.twoGenerations, at: scratch.path("original"), releases)
        copy = CopiedStore(path: scratch.path("copy"))
    }

    private func file(_ store: CopiedStore, version: String = "2.0.0", _ name: String = "food.db") throws -> String {
        let generations = try Files.list("\(store.path)/.moult/generations")
        let generation = try #require(generations.first { $0.hasPrefix("\(version)+") })
        return "\(store.path)/.moult/generations/\(generation)/\(name)"
    }

    /// Replaces a text in a file with another text of the same length.
    private func replace(_ old: String, _ new: String, in path: String) throws {
        try Shell.must(["sed", "-i.old", "s/\(old)/\(new)/", path])
        let isOther = try Shell.run(["cmp", "-s", path, "\(path).old"]).status == 1
        try #require(isOther)
        try Shell.must(["rm", "\(path).old"])
    }

    /// In an overlay, a file keeps its inode, and its directory cannot be renamed.
    static let ways = CopyWay.available.filter { $0 != .overlay }

    @Test(arguments: ways)
    func `a copy is shown as not verified until a writing command has verified it once`(way: CopyWay) throws {
        try way.copy(original.path, to: copy.path)
        defer { way.release(copy.path) }
        #expect(try copy.state("food") == "unverified")
        let nagios = try copy.moult(["status", "--nagios"])
        #expect(nagios.status == 1 && nagios.output.contains("food.db: it is a copy that was not verified"))
        try copy.must("apply", releases.manifest(2))
        #expect(try copy.state("food") == "sound")
        #expect(try copy.moult(["status", "--nagios"]).status == 0)
        // Another update records the checks of writable databases. After that, nothing is written.
        try copy.must("apply", releases.manifest(2))
        let after = try Tree(copy.path)
        try copy.must("apply", releases.manifest(2))
        #expect(try Tree(copy.path) == after)
    }

    @Test(arguments: ways)
    func `a file that differs in a copy is reported, and applying its release repairs it`(way: CopyWay) throws {
        // With hard links, as from `cp -al`, this would also change the file of the original.
        guard way != .hardLinks else { return }
        try way.copy(original.path, to: copy.path)
        defer { way.release(copy.path) }
        try replace("FOOD2", "FAKE2", in: file(copy))
        let verify = try copy.moult(["verify"])
        #expect(verify.status == 1 && verify.output.contains("does not have the SHA-256"), "\(verify.output)")
        try copy.must("apply", releases.manifest(2))
        #expect(try copy.moult(["verify", "--deep"]).status == 0)
        #expect(try copy.moult(["sql", "SELECT x FROM food.food"]).output == "x\nFOOD2\n")
    }

    @Test(.enabled(if: CopyWay.available.contains(.overlay), "needs root and overlay mounts"))
    func `a damaged file in a lower layer of an overlay is reported, and a copy of the store is repaired`() throws {
        try CopyWay.overlay.copy(original.path, to: copy.path)
        defer { CopyWay.overlay.release(copy.path) }
        try replace("FOOD2", "FAKE2", in: file(copy))
        let ended = try copy.moult(["apply", releases.manifest(2)])
        #expect(ended.status == 5 && ended.errors.contains("Copy the store to a volume"), "\(ended.errors)")
        let outside = CopiedStore(path: scratch.path("outside"))
        try CopyWay.archive.copy(copy.path, to: outside.path)
        try outside.must("apply", releases.manifest(2))
        #expect(try outside.moult(["verify", "--deep"]).status == 0)
    }

    @Test func `rollback refuses a kept release whose file differs in a copy`() throws {
        try CopyWay.archive.copy(original.path, to: copy.path)
        try replace("FOOD1", "FAKE1", in: file(copy, version: "1.0.0"))
        let ended = try copy.moult(["rollback"])
        #expect(ended.status == 3 && ended.errors.contains("SHA-256"), "\(ended.errors)")
    }

    @Test func `rollback refuses a kept release whose manifest differs in a copy`() throws {
        try CopyWay.archive.copy(original.path, to: copy.path)
        try replace("local.copies", "local.copied", in: file(copy, version: "1.0.0", "manifest.json"))
        let ended = try copy.moult(["rollback"])
        #expect(ended.status == 3 && ended.errors.contains("manifest.json"), "\(ended.errors)")
    }

    @Test func `status reports a read-only database that was changed in place as damaged`() throws {
        let food = try file(original)
        try Shell.must(["chmod", "u+w", food])
        try Shell.must(["sh", "-ec", "printf x | dd of='\(food)' bs=1 seek=5000 conv=notrunc 2>/dev/null"])
        #expect(try original.state("food") == "changed")
        #expect(try original.moult(["status", "--nagios"]).status == 2)
    }

    @Test func `a store that is restored at its own path works, even with the same inodes`() throws {
        for _ in 0..<3 {
            try Shell.must(["cp", "-r", original.path, scratch.path("backup")])
            try Shell.must(["sh", "-ec", "chmod -R u+w '\(original.path)' && rm -rf '\(original.path)'"])
            try Shell.must(["mv", scratch.path("backup"), original.path])
            #expect(try original.moult(["verify"]).status == 0)
            #expect(try original.moult(["status"]).output.contains("changed") == false)
        }
        try original.must("rollback")
        #expect(try original.moult(["sql", "SELECT x FROM food.food"]).output == "x\nFOOD1\n")
    }

    @Test func `a release is patched from the files of a copy`() throws {
        try CopyWay.archive.copy(original.path, to: copy.path)
        try copy.must("apply", releases.manifest(3))
        #expect(try copy.state("food") == "sound")
        try copy.must("rollback")
        #expect(try copy.state("food") == "sound")
    }

    @Test func `a copy with hard links has its own history`() throws {
        try CopyWay.hardLinks.copy(original.path, to: copy.path)
        let before = try Files.read("\(original.path)/.moult/history.jsonl", limit: 1 << 20)
        try copy.must("apply", releases.manifest(3))
        try copy.must("hold", "9.0.0", "--reason", "test")
        #expect(try Files.read("\(original.path)/.moult/history.jsonl", limit: 1 << 20) == before)
        #expect(try original.moult(["status"]).output.contains("9.0.0") == false)
    }

    /// `cp -al` gives both stores the same file, whose `-wal` would be a different one for each name.
    @Test func `an update does not write to a database with a hard link, and the command in the error helps`() throws {
        try Shell.must(["cp", "-al", original.path, copy.path])
        let before = try Shell.must(["sha256sum", "\(original.path)/app.db"])
        let planned = try copy.moult(["plan", releases.manifest(3)])
        let refused = try copy.moult(["apply", releases.manifest(3)])
        for ended in [planned, refused] {
            #expect(ended.status == 3 && ended.errors.contains("has more than one hard link"), "\(ended)")
        }
        #expect(try Shell.must(["sha256sum", "\(original.path)/app.db"]) == before)
        let command = try #require(refused.errors.firstRange(of: "cp -p "))
        try Shell.must(["sh", "-c", String(refused.errors[command.lowerBound...])])
        try copy.must("apply", releases.manifest(3))
        #expect(
            try Shell.must(["sqlite3", "\(original.path)/app.db", "SELECT name FROM item ORDER BY 1"])
                == "MINE\nSHIPPED2\n")
    }

    @Test func `the error of a recovery that a hard link blocks has the commands that help`() throws {
        let store = try CopiedStore.make(.interruptedLate, at: scratch.path("interrupted"), releases)
        try Files.hardLink("\(store.path)/app.db", at: scratch.path("other"))
        let ended = try store.moult(["recover"])
        #expect(ended.status == 6 && ended.errors.contains("has more than one hard link"), "\(ended)")
        let advice = try #require(ended.errors.firstRange(of: "a file of its own: "), "\(ended)").upperBound
        let end = try #require(ended.errors.firstRange(of: ". Then run: moult recover"), "\(ended)").lowerBound
        try Shell.must(["sh", "-ec", String(ended.errors[advice..<end])])
        try store.must("recover")
        #expect(
            try Shell.must(["sqlite3", "\(store.path)/app.db", "SELECT name FROM item ORDER BY 1"])
                == "MINE\nSHIPPED3\n")
    }
}
