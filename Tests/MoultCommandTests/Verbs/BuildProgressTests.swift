import MoultBasics
import MoultPublish
import TestSupport
import Testing

/// The progress of a build. Its handler can also stop the build.
@Suite struct BuildProgressTests {
    private let scratch: Scratch
    init() throws {
        scratch = try Scratch()
        try scratch.write("food.csv", "1,egg\n2,milk\n3,rye\n")
        try scratch.write(
            "make.sql", "CREATE TABLE food (id INTEGER, name TEXT);\n.mode csv\n.import food.csv food\n")
    }

    @Test func `build reports progress in words and bytes`() throws {
        var parts: [PackProgress] = []
        var options = BuildOptions()
        options.progress = { parts.append($0) }
        _ = try DatabaseBuilder(options).build(
            script: scratch.path("make.sql"), output: scratch.path("food.db"))
        let made = scratch.path("make.sql")
        #expect(
            parts.map(\.what) == [
                "\(made):1", "\(made):2", "\(made):3", "import \(scratch.path("food.csv"))",
                "make the database read-only",
            ])
        // At the end, the progress reports the complete size of the file.
        #expect(parts.filter { $0.total > 0 }.map { [$0.done, $0.total] } == [[19, 19]])
    }

    private struct Stop: Error {}

    @Test(arguments: 0..<5)
    func `an interrupted build leaves nothing behind`(_ count: Int) throws {
        var left = count
        var options = BuildOptions()
        options.progress = { _ in
            if left == 0 { throw Stop() }
            left -= 1
        }
        let before = try Tree(scratch.path, times: false)
        #expect(throws: Stop.self) {
            try DatabaseBuilder(options).build(script: scratch.path("make.sql"), output: scratch.path("food.db"))
        }
        #expect(try Tree(scratch.path, times: false) == before)
    }

    /// The statement never ends. Uses SIGTERM, because background jobs of a shell ignore SIGINT.
    @Test(arguments: ["build endless.sql -o food.db", "pack endless.json -o made"])
    func `a signal stops the running SQL statement of build and pack`(_ verb: String) throws {
        try scratch.write(
            "endless.sql",
            "CREATE TABLE food AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n;")
        try scratch.write(
            "endless.json",
            #"{"manifest":1,"product":"org.example.test","version":"1.0.0","sequence":1,"databases":{"food":{"kind":"reference","build":{"script":"endless.sql"}}}}"#
        )
        // The command has started once it handles SIGTERM, which is bit 15 of the mask.
        let run = try scratch.moult(
            """
            moult \(verb) & pid=$!
            until mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$pid/status) && (( 0x$mask & 0x4000 )); do :; done
            kill -TERM $pid; wait $pid
            """)
        #expect(run.status == 1)
        #expect(run.err.hasPrefix("moult: error: stopped before anything was "))
        #expect(run.err.hasSuffix(": moult received SIGTERM\n"))
        let left = try scratch.moult(
            "find . -name '*.db' -o -name '.*build*' -o -name '.moult-pack*' -o -name '*.tar.zst'")
        #expect(left.out == "")
    }
}
