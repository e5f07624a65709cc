import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Files that killed updates and clean-ups leave behind, and files that may be removed.
@Suite(.tags(.thorough, .slow)) struct LeftoverTests {
    let releases: CopiedStore.Releases
    let scratch: Scratch
    private var path: String { scratch.path("store") }

    init() throws { (releases, scratch) = (try CopiedStore.Releases(), try Scratch()) }

    /// A caller runs the rollback again, because it does not know that the first one was decided.
    @Test(arguments: [[], ["--to", "2.0.0"]])
    func `an interrupted rollback is completed, and not repeated`(_ target: [String]) throws {
        var finished = 0
        for call in ["renameat2", "fsync"] {
            for number in 1...12 {
                let store = try CopiedStore.make(.idle, at: scratch.path("\(call)-\(number)"), releases)
                for release in 2...3 { try store.must("apply", releases.manifest(release)) }
                guard try store.kill(at: (call, number), ["rollback"] + target) else { break }
                let again = try store.moult(["rollback"] + target)
                // A command that was killed after its end, while it recorded the attempt, is complete.
                let isDone = !target.isEmpty && again.errors.contains("is the installed generation")
                #expect(again.status == 0 || isDone, "\(again)")
                let current = try Files.target(ofLink: "\(store.path)/.moult/current") ?? ""
                guard again.output.contains("is now finished") else { continue }
                finished += 1
                #expect(current.hasPrefix("generations/2.0.0"), "\(call) \(number): \(current)")
                // A further rollback goes back to an earlier release; with `--to`, a rollback goes to that release.
                try store.must("rollback")
                #expect(
                    try Files.target(ofLink: "\(store.path)/.moult/current")?.hasPrefix("generations/1.0.0") == true)
            }
        }
        #expect(finished > 2)
    }

    @Test func `the next command completes a clean-up that was killed`() throws {
        var killed: Set<String> = []
        let calls = ["unlinkat", "renameat2", "write"]
        for call in calls {
            for number in 1...6 {
                let path = scratch.path("\(call)-\(number)")
                let store = try CopiedStore.make(.quarantine, at: path, releases)
                let clean = ["clean", "--quarantine-older-than", "0", "--including-user-data"]
                guard try store.kill(at: (call, number), clean) else { break }
                killed.insert(call)
                try store.must("recover")
                let listed = try Shell.must([
                    "find", path, "-empty", "-type", "d", "-o", "-name", "*.moult-new", "-o", "-name", ".removed*",
                ])
                let left = listed.split(separator: "\n").map { $0.dropFirst(path.count) }.filter {
                    !["/.moult/transactions", "/.moult/quarantine", "/.moult/downloads"].contains($0)
                }
                #expect(left == [], "\(call) \(number)")
                for set in try Files.list("\(path)/.moult/quarantine") {
                    #expect(try Files.facts("\(path)/.moult/quarantine/\(set)/set.json") != nil, "\(call) \(number)")
                }
            }
        }
        #expect(killed == Set(calls))
    }

    /// A step may stage files of any name.
    @Test func `the next command removes all staged files of a command that was killed while it removed them`() throws {
        var killed = 0
        for number in 1...80 {
            let store = try CopiedStore.make(.idle, at: scratch.path("\(number)"), releases)
            let hooks = try scratch.directory("\(number)/hooks")
            let step: JSON = [
                "executable": .string("\(Project.root)/Examples/steps/notify"), "after": "verify",
                "with": ["directory": .string(hooks)], "writable": [.string(hooks)],
            ]
            let settings: JSON = ["moult": 1, "product": "local.copies", "steps": ["example.notify": step]]
            try Files.replace("\(store.path)/moult.json", with: Array(settings.pretty.utf8))
            try store.must("steps", "trust", "example.notify", "-q")
            guard try store.kill(at: ("unlinkat", number), "apply", releases.manifest(2)) else { break }
            killed += 1
            try store.must("recover")
            let left = try Files.list("\(store.path)/.moult/transactions")
            #expect(left == [], "after a kill at call \(number)")
        }
        #expect(killed > 3)
    }

    @Test func `the next command removes a history line that a crash left incomplete`() throws {
        let store = try CopiedStore.make(.twoGenerations, at: path, releases)
        let history = "\(path)/.moult/history.jsonl"
        let whole = try Files.read(history, limit: 1 << 20)
        try Shell.must(["sh", "-ec", "printf '{\"time\":\"2026' >> '\(history)'"])
        try Shell.must([
            "sh", "-ec",
            "touch '\(path)/.moult.json.moult-new' '\(path)/.moult/.attempt.json.moult-new' && mkdir -p '\(path)/.moult/quarantine/20261122000000-0a0a0a0a-diary'",
        ])
        try store.must("recover")
        #expect(try Files.read(history, limit: 1 << 20) == whole)
        #expect(try Files.facts("\(path)/.moult.json.moult-new") == nil)
        #expect(try Files.facts("\(path)/.moult/.attempt.json.moult-new") == nil)
        #expect(try Files.list("\(path)/.moult/quarantine") == [])
    }

    @Test func `a generation that was just replaced is not removed, even if it is old`() throws {
        let store = try CopiedStore.make(.idle, at: path, releases)
        try Shell.must(["sed", "-i", "s/\"keep\": 9/\"keep\": 1/", "\(path)/moult.json"])
        let generation = try #require(try Files.list("\(path)/.moult/generations").first)
        try Shell.must(["touch", "-d", "2 hours ago", "\(path)/.moult/generations/\(generation)"])
        try store.must("apply", releases.manifest(2))
        #expect(try Files.list("\(path)/.moult/generations").contains(generation))
        try store.must("rollback")
    }

    @Test func `an unknown setting is refused, and the error names it`() throws {
        let store = try CopiedStore.make(.idle, at: path, releases)
        try Shell.must([
            "sed", "-i", "s/\"keep\": 9/\"keep\": 9, \"backupSkipsGenerations\": true/", "\(path)/moult.json",
        ])
        let ended = try store.moult(["status"])
        #expect(ended.status != 0 && ended.errors.contains("backupSkipsGenerations"), "\(ended.errors)")
    }
}
