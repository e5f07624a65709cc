import Moult
import MoultBasics
import MoultFiles
import StepKit
import TestSupport
import Testing

/// The example steps: each passes the conformance kit, does its work in an update, and survives crashes.
@Suite(.serialized) struct ExampleStepsTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    @Test(arguments: ExampleSteps.allCases) func `an example step passes the conformance kit`(_ example: ExampleSteps)
        throws
    {
        var options = ConformanceKit.Options(executable: try example.program(in: scratch))
        switch example {
        case .notify: (options.with, options.phase) = (["directory": "{granted}"], .verify)
        case .reindex:
            try Shell.must(["sqlite3", scratch.path("articles.db")], input: ExampleSteps.articles)
            options.databases = [("articles", scratch.path("articles.db"))]
            options.with = ["database": "articles", "table": "article_fts"]
        }
        let checks = try ConformanceKit(options).run()
        #expect(checks.filter { $0.finding != nil } == [])
        #expect(checks.count > 15)
    }

    @Test(arguments: ExampleSteps.allCases)
    func `an example step leaves the expected result`(_ example: ExampleSteps) throws {
        let world = try example.world(in: scratch)
        try world.update()
        #expect(try world.world.versions() == ["2.0.0"])
        #expect(try example.fault(in: world, installed: "2.0.0") == nil)
        #expect(
            try Verifier(StoreSnapshot(StoreLayout(root: world.store))).verify(deep: true).compactMap(\.finding) == [])
    }

    /// The command is killed at its own and the step's system calls that change the disk.
    @Test(.tags(.thorough), arguments: ExampleSteps.allCases) func `an example step survives crashes`(
        _ example: ExampleSteps
    ) throws {
        let moult = try BuiltMoult.path()
        let points: [(call: String, number: Int)] = [
            ("mkdirat", 2), ("mkdirat", 8), ("fsync", 1), ("fsync", 8), ("fsync", 10), ("fsync", 12), ("fsync", 14),
            ("renameat2", 1), ("renameat2", 4), ("rename", 1), ("unlinkat", 1), ("unlinkat", 9), ("execveat", 1),
            ("fork", 1),
            ("wait4", 1), ("wait4", 4), ("memfd_create", 1),
        ]
        var fired = 0
        var endings: Set<History.Entry.Outcome> = []
        for point in points {
            let own = try Scratch()
            let world = try example.world(in: own)
            let note = Comment("\(example) \(point.call) number \(point.number)")
            let ended = try Shell.run([
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(point.call)",
                "-e", "inject=\(point.call):signal=SIGKILL:when=\(point.number)", moult, "apply", world.world.second,
                "--store", world.store,
            ])
            guard ended.status != 0 else { continue }
            fired += 1
            #expect(try world.world.versions().count == 1, note)
            for result in try world.world.orchestrator().recover() { endings.insert(result.ending) }
            let settled = try world.world.versions()
            #expect(settled == ["1.0.0"] || settled == ["2.0.0"], note)
            #expect(try example.fault(in: world, installed: settled.first ?? "") == nil, note)
            _ = try Shell.must([moult, "apply", world.world.second, "--store", world.store])
            #expect(try world.world.versions() == ["2.0.0"], note)
            #expect(try example.fault(in: world, installed: "2.0.0") == nil, note)
        }
        #expect(fired >= 10)
        #expect(endings.isSuperset(of: [.cleaned, .finished]))
    }
}
