import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Every way to copy a store, in every state, with every command: a copy works like its original.
@Suite struct CopyMatrixTests {
    static let writing: [String] = ["apply installed", "apply next", "rollback", "recover", "sql"]

    /// Returns the command line for an action, on a store in this state.
    static func arguments(_ action: String, _ state: CopiedStore.State, _ releases: CopiedStore.Releases) -> [String] {
        switch action {
        case "apply installed": ["apply", releases.manifest(state.installed)]
        case "apply next": ["apply", releases.manifest(min(state == .rolledBack ? 3 : state.installed + 1, 3))]
        case "sql": ["sql", "SELECT x FROM food.food"]
        default: [action]
        }
    }

    struct Outcome: Equatable {
        var exit: Int32
        var content: CopiedStore.Content
        var verify: Int32
    }

    static func outcome(_ store: CopiedStore, _ arguments: [String]) throws -> (Outcome, Shell.Ended) {
        let ended = try store.moult(arguments)
        return (
            Outcome(
                exit: ended.status, content: try store.content(), verify: try store.moult(["verify", "--deep"]).status),
            ended
        )
    }

    @Test(.tags(.thorough)) func `the proof page has the counts of the matrix`() throws {
        let (ways, states) = (CopyWay.allCases.count, CopiedStore.State.allCases.count)
        // The matrix also has three read-only commands.
        let commands = Self.writing.count + 3
        let page = try Project.text("docs/proof.md")
        #expect(
            page.contains(
                "| \(ways) ways, \(states) states, \(commands) commands: \(ways * states * commands) runs | 0 |"
            ))
    }

    @Test(.tags(.thorough), arguments: CopiedStore.State.allCases)
    func `every command works on every copy as on the original`(state: CopiedStore.State) throws {
        let (releases, scratch) = (try CopiedStore.Releases(), try Scratch())
        let original = try CopiedStore.make(state, at: scratch.path("original"), releases)
        // The expected outcome of each command, from a new store in the same state that was never copied.
        var expected: [String: Outcome] = [:]
        for action in Self.writing {
            let store = try CopiedStore.make(state, at: scratch.path("expected \(action)"), releases)
            expected[action] = try Self.outcome(store, Self.arguments(action, state, releases)).0
        }
        let before = try original.files()
        for way in CopyWay.available {
            let note = Comment("\(way.rawValue), \(state.rawValue)")
            let looked = CopiedStore(path: scratch.path("\(way)-looked"))
            defer { way.release(looked.path) }
            try way.copy(original.path, to: looked.path)
            let status = try looked.moult(["status"])
            #expect(status.status == 0 && !status.output.contains("✗"), "\(note): \(status.output)")
            for arguments in [["verify"], ["verify", "--deep"]] {
                let ended = try looked.moult(arguments)
                #expect(ended.status == (state.isInterrupted ? 1 : 0), "\(note), \(arguments): \(ended.output)")
                #expect(!ended.output.contains("SHA-256 is"), note)
            }
            if !state.isInterrupted { #expect(try looked.content() == original.content(), note) }
            for action in Self.writing {
                let copy = CopiedStore(path: scratch.path("\(way)-\(action)"))
                defer { way.release(copy.path) }
                try way.copy(original.path, to: copy.path)
                let arguments = Self.arguments(action, state, releases)
                let (outcome, ended) = try Self.outcome(copy, arguments)
                #expect(outcome == expected[action], "\(note), \(action): \(ended.output) \(ended.errors)")
                let now = try original.files()
                let changed = Set(before.keys).union(now.keys).filter { before[$0] != now[$0] }
                #expect(changed == [], "\(note), \(action) changed the original")
            }
        }
    }
}
