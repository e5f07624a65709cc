import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// The kernel kills the built command at a system call, and the next command that writes recovers.
@Suite(.tags(.thorough, .slow), .serialized) struct KillTests {
    /// The calls that change a disk, and which of them to kill at: early, late and in between.
    static let points: [(call: String, number: Int)] = [
        ("mkdirat", 1), ("mkdirat", 3), ("openat2", 20), ("openat2", 30), ("fchmod", 1), ("fchmod", 2), ("fsync", 1),
        ("fsync", 3),
        ("fsync", 5),
        ("fsync", 6), ("fsync", 7), ("fsync", 8), ("fsync", 9), ("fsync", 10), ("renameat2", 1), ("renameat2", 2),
        ("renameat2", 3), ("renameat2", 4), ("renameat2", 5), ("symlinkat", 1), ("chmod", 1), ("unlinkat", 1),
        ("unlinkat", 3), ("unlinkat", 6), ("unlinkat", 9), ("write", 3), ("write", 5),
    ]

    @Test func `every release is complete after a kill at any point`() throws {
        let releases = try Releases()
        let moult = try BuiltMoult.path()
        var endings: [History.Entry.Outcome: Int] = [:]
        var fired = 0
        for point in Self.points {
            let world = try World(releases)
            let note = Comment("\(point.call) number \(point.number)")
            let ended = try Shell.run([
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(point.call)",
                "-e", "inject=\(point.call):signal=SIGKILL:when=\(point.number)", moult, "apply", releases.second,
                "--store", world.store,
            ])
            // A point that the update does not reach is not tested, so the table must be maintained such that most
            // points are reached.
            guard ended.status != 0 else { continue }
            fired += 1
            let versions = try world.versions()
            #expect(versions.count == 1, note)
            let orchestrator = try world.orchestrator()
            if try orchestrator.isUnfinished() {
                let status = try Shell.run([moult, "status", "--store", world.store])
                #expect(status.output.contains("unfinished"), note)
            }
            for result in try orchestrator.recover() { endings[result.ending, default: 0] += 1 }
            let settled = try world.versions()
            #expect(settled == ["1.0.0"] || settled == ["2.0.0"], note)
            #expect(try Shell.must(["sqlite3", "\(world.store)/user.db", "select count(*) from note"]) == "0\n", note)
            let after = try Tree(world.store)
            #expect(try orchestrator.recover().isEmpty, note)
            #expect(try Tree(world.store) == after, note)
            _ = try Shell.must([moult, "apply", releases.second, "--store", world.store])
            #expect(try world.versions() == ["2.0.0"], note)
            #expect(try Files.list("\(world.store)/.moult/transactions") == [], note)
        }
        #expect(fired >= 20)
        // Some of the kills were before the decision, and some after it.
        #expect(endings[.cleaned, default: 0] > 0)
        #expect(endings[.finished, default: 0] > 0)
    }
}
