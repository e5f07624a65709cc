import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@testable import MoultCommand

/// The read-only verbs: status, history, verify, attach, steps.
@Suite struct ReadOnlyVerbsTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    @Test(arguments: [
        "status", "status --json", "history", "verify", "verify --deep", "attach",
        "plan --allow-downgrade rel/test-1.0.0.json",
        "rollback --dry-run", "clean --dry-run --keep 1", "unhold", "sql 'SELECT * FROM food.food'",
    ])
    func `read-only verbs change nothing`(_ line: String) throws {
        try world.install(world.first, world.second)
        let tree = try world.tree
        let run = try world.run("moult \(line)")
        #expect([0, 2].contains(run.status), "\(run)")
        #expect(try world.tree == tree)
    }

    @Test(arguments: [
        ("inspect rel/test-1.0.0.json", "  schema\r\n      sha256:"), ("quarantine", "  Kept since\r\n2"),
    ])
    func `tables fit into eighty columns of a terminal`(_ line: String, _ part: String) throws {
        try world.install(world.first)
        try world.must("moult reset -q user --set-user-data-aside")
        let shown = try world.must("NO_COLOR=1 COLUMNS=80 script -qec 'moult \(line)' /dev/null")
        for row in shown.split(whereSeparator: \.isNewline) { #expect(row.count <= 80, "\(row)") }
        #expect(shown.contains(part), "\(shown)")
    }

    @Test(.processes) func `status --json has the same facts`() throws {
        try world.install(world.first, world.second)
        let lease = try Store(at: world.store).lease()
        let status = try #require(try world.json("moult status --json").first)
        #expect(status["installed"]?.string == "2.0.0")
        #expect(status["generation"]?.string == lease.generation)
        #expect(status["guard"]?.string == "\(Guard.level)")
        #expect(status["databases"]?.array?.compactMap { $0["state"]?.string } == ["sound", "living"])
        let current = status["generations"]?.array?.first { $0["current"]?.bool == true }
        #expect(current?["holders"]?.array?.compactMap { $0["pid"]?.integer } == [Int64(getpid())])
        #expect(try world.must("moult status").contains("  in service; read by pid \(getpid()) ("))
        withExtendedLifetime(lease) {}
    }
}
