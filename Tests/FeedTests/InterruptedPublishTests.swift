import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult publish` and `moult export` fail or are killed: the exit status says what is public, and the same command
/// completes the work.
@Suite(.tags(.thorough)) struct InterruptedPublishTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.follow(["1.0.0"])
        try bench.release("2.0.0", sequence: 2)
    }

    private func serial() throws -> Int64? { try bench.feed()["serial"]?.integer }

    private func failing(_ call: String, _ how: String, _ number: Int, _ line: String) throws -> Shell.Ended {
        try bench.run(
            "strace -f -qq -o /dev/null -e trace=\(call) -e inject=\(call):\(how):when=\(number) moult \(line)")
    }

    /// Returns the files in the directory that a complete `publish` would have removed.
    private func leftovers() throws -> [String] {
        try Files.list(bench.path("public")).filter { $0.hasPrefix(".") || $0.hasSuffix(".new") }
    }

    @Test(
        arguments: [("rename,renameat2", 1, [0, 1, 6]), ("unlink,unlinkat", 5, [0, 1])] as [(String, Int, Set<Int32>)])
    func `if a system call fails, the exit status says whether the new feed is public`(
        calls: String, step: Int, expected: Set<Int32>
    ) throws {
        try bench.must("moult apply -q; moult publish public -q -k a.key; cp -r public before; cp -r store known")
        var outcomes: Set<Int32> = []
        for number in stride(from: 1, to: 32 * step, by: step) {
            try bench.must("rm -rf public; cp -r before public; chmod -R u+w store; rm -rf store; cp -r known store")
            let ended = try failing(calls, "error=EIO", number, "publish public rel/test-2.0.0.json -q -k a.key")
            outcomes.insert(ended.status)
            #expect(try serial() == (ended.status == 1 ? 2 : 3), "call \(number): \(ended.errors)")
            #expect([0, 1, 6].contains(ended.status), "call \(number): \(ended.errors)")
            if ended.status == 6 {
                #expect(
                    ended.errors.hasPrefix(
                        "moult: error: the feed with serial 3 is public, but the command did not finish"))
            }
            try bench.must("moult check -q || [ $? = 2 ]; moult publish public rel/test-2.0.0.json -q -k a.key")
            #expect(try leftovers() == [], "call \(number)")
        }
        #expect(outcomes.isSuperset(of: expected), "\(outcomes)")
    }

    @Test func `publishing the same release again renews the feed`() throws {
        let before = try serial()
        #expect(try bench.must("moult publish public rel/test-1.0.0.json -k a.key").contains("1 release,"))
        #expect(try serial() == before.map { $0 + 1 })
        try bench.must("moult apply -q")
    }

    @Test(arguments: ["--rollout 10", "--channel beta"])
    func `publishing the same release with another rollout or channel is refused`(option: String) throws {
        #expect(try bench.run("moult publish public rel/test-1.0.0.json -k a.key \(option)").status == 3)
    }

    @Test func `a leftover signature of another manifest is replaced`() throws {
        // A `publish` of a different 2.0.0 was killed before it had written its manifest.
        try bench.must(
            "echo other > public/test-2.0.0.json; moult sign -q -k a.key public/test-2.0.0.json; rm public/test-2.0.0.json"
        )
        try bench.must("moult publish public rel/test-2.0.0.json -q -k a.key")
        try bench.must("minisign -V -q -p a.pub -m public/test-2.0.0.json; moult apply -q")
        // A leftover signature next to the release is replaced as well. Here, the release was packed again after it was
        // signed.
        try bench.release("3.0.0", sequence: 3)
        try bench.must("cp public/test-2.0.0.json.minisig rel/test-3.0.0.json.minisig")
        try bench.must("moult publish public rel/test-3.0.0.json -q -k a.key")
        try bench.must("minisign -V -q -p a.pub -m public/test-3.0.0.json; moult apply -q")
    }

    @Test func `an interrupted pack leaves no manifest with the bundle of another release`() throws {
        for (version, sequence) in [("1.0.0", 1), ("2.0.0", 2)] {
            try bench.must(
                """
                mkdir \(sequence); sqlite3 \(sequence)/food.db "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT);
                INSERT INTO food VALUES(1, '\(version)')"
                echo '{ "manifest": 1, "product": "org.example.pack", "version": "\(version)", "sequence": \(sequence),
                  "databases": { "food": { "kind": "reference", "source": "food.db" } } }' > \(sequence)/draft.json
                """)
        }
        try bench.must(
            "moult pack -q 1/draft.json --name app -o out; moult sign -q -k a.key out/app.json; cp -r out before")
        var (kills, gone) = (0, 0)
        for number in 1...40 {
            try bench.must("rm -rf out; cp -r before out")
            let ended = try failing(
                "rename,renameat2", "signal=SIGKILL", number, "pack -q 2/draft.json --name app -o out")
            if try Files.facts(bench.path("out/app.json")) != nil {
                try bench.must(#"sha256sum out/app.tar.zst | cut -d' ' -f1 | grep -qf - out/app.json"#)
            } else {
                gone += 1
            }
            if ended.status == 0 { break }
            kills += 1
            try bench.must("moult pack -q 2/draft.json --name app -o out")
            #expect(try Files.list(bench.path("out")) == ["app.json", "app.tar.zst"], "call \(number)")
            #expect(try bench.must("cat out/app.json").contains("2.0.0"))
        }
        #expect(kills > 3 && gone > 0)
        // If `pack` was killed before it had written the manifest, packing the older release again restores that
        // release.
        #expect(try Files.list(bench.path("out")) == ["app.json", "app.tar.zst"])
    }

    @Test func `an interrupted export leaves a set that stores can follow`() throws {
        try bench.must("moult export 1.0.0 stick -q; moult publish public rel/test-2.0.0.json -q -k a.key")
        try bench.must("cp -r stick before; cp -r store known")
        var kills = 0
        for number in 1...40 {
            try bench.must("rm -rf stick; cp -r before stick")
            let ended = try failing("rename,renameat2", "signal=SIGKILL", number, "export 2.0.0 stick -q")
            try bench.must(
                "mkdir -p new; chmod -R u+w new; rm -rf new; moult init new --product org.example.test --key a.pub -q; "
                    + "moult apply -q --store new --feed stick/feed.json")
            if ended.status == 0 { break }
            kills += 1
        }
        try bench.must("moult export 2.0.0 stick -q; moult apply -q --feed stick/feed.json")
        #expect(try bench.installed() == "2.0.0")
        #expect(try Files.list(bench.path("stick")).filter { $0.hasPrefix(".") } == [])
        #expect(kills > 3)
    }
}
