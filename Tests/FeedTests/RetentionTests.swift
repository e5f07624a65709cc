import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// With `moult publish --keep-releases`, the feed stays small, and older stores can still be updated.
@Suite struct RetentionTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.key("a")
    }

    private func publish(
        _ version: String, _ sequence: Int, from: String? = nil, app: String? = nil, options: String = ""
    ) throws {
        let ranges = JSON.compact(["from": .optional(from), "app": .optional(app)])
        try bench.release(
            version, sequence: sequence, top: ranges.members?.isEmpty == true ? [] : [.init("requires", ranges)])
        try bench.must("moult publish -q public rel/test-\(version).json -k a.key \(options)")
    }

    private func versions() throws -> [String] {
        try bench.feed()["releases"]?.array?.compactMap { $0["version"]?.string } ?? []
    }

    private func keep(_ count: Int) throws -> [String] {
        try bench.must("moult publish -q public -k a.key --keep-releases \(count)")
        return try versions()
    }

    @Test func `--keep-releases keeps the newest releases and removes the files of older ones`() throws {
        for number in 1...4 { try publish("\(number).0.0", number) }
        let said = try bench.must("moult publish public -k a.key --keep-releases 2")
        #expect(
            said.hasPrefix(
                """
                - test-1.0.0.tar.zst
                - test-2.0.0.tar.zst
                - no longer in the feed: 1.0.0, 2.0.0
                ~ public/feed.json  serial 5, 2 releases,
                """))
        #expect(try versions() == ["3.0.0", "4.0.0"])
        let bundles = try Files.list(bench.path("public")).filter { $0.hasSuffix(".zst") }.sorted()
        #expect(bundles == ["test-3.0.0.tar.zst", "test-4.0.0.tar.zst"])
        #expect(
            try bench.must("moult publish public --check --trust a.pub")
                .hasPrefix("✓ public/feed.json  serial 5, 2 releases,"))
        // A store with a release that was dropped from the feed can still be updated.
        try bench.must("moult init -q --product org.example.test --key a.pub --feed public/feed.json")
        try bench.must("moult sign -q rel/test-1.0.0.json -k a.key && moult apply -q rel/test-1.0.0.json")
        #expect(try bench.installed() == "1.0.0")
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "4.0.0")
        // The trial installations of the next release use the remaining releases.
        try publish("5.0.0", 5, options: "--keep-releases 1")
        #expect(try versions() == ["5.0.0"])
    }

    @Test func `a version that was dropped cannot be published with other content`() throws {
        for number in 1...2 { try publish("\(number).0.0", number) }
        #expect(try keep(1) == ["2.0.0"])
        try bench.release("1.0.0", sequence: 1, rows: 3)
        let ended = try bench.run("moult publish public rel/test-1.0.0.json -k a.key")
        #expect(ended.status == 3)
        #expect(
            ended.errors.contains("public/test-1.0.0.json already exists with different content"), "\(ended.errors)")
    }

    @Test func `publish refuses a release that it would drop at once`() throws {
        try publish("2.0.0", 2)
        try bench.release("1.0.0", sequence: 1)
        #expect(
            try bench.refusal("moult publish public rel/test-1.0.0.json -k a.key --keep-releases 1", status: 3) == """
                moult: error: release 1.0.0 would be dropped from the feed at once: the feed has 1 newer release, and --keep-releases allows no more
                  Keep more releases, or publish without --keep-releases.

                """)
    }

    @Test func `releases that other releases require stay in the feed`() throws {
        try publish("1.0.0", 1)
        try publish("2.0.0", 2)
        try publish("2.1.0", 3, from: ">=2")
        try publish("3.0.0", 4)
        try publish("4.0.0", 5, from: ">=2 <3")
        try publish("5.0.0", 6, from: ">=4")
        // 5.0.0 requires 4.0.0, which requires a release 2.x, and 2.0.0 can be installed in every store.
        #expect(try keep(1) == ["2.0.0", "2.1.0", "4.0.0", "5.0.0"])
        try bench.must("moult init -q --product org.example.test --key a.pub")
        try bench.must("moult sign -q rel/test-1.0.0.json -k a.key && moult apply -q rel/test-1.0.0.json")
        try bench.must("moult apply -q --feed public/feed.json")
        #expect(try bench.installed() == "5.0.0")
    }

    @Test func `withdrawn releases stay in the feed`() throws {
        for number in 1...3 { try publish("\(number).0.0", number) }
        try bench.must("moult publish -q public -k a.key --withdraw 1.0.0 --reason 'wrong names'")
        #expect(try keep(1) == ["1.0.0", "3.0.0"])
        // Withdrawn releases do not count towards the number to keep.
        try publish("4.0.0", 4)
        try bench.must("moult publish -q public -k a.key --withdraw 4.0.0 --reason 'wrong names'")
        #expect(try keep(1) == ["1.0.0", "3.0.0", "4.0.0"])
    }

    @Test func `new stores find a release while the newest is being rolled out`() throws {
        for number in 1...3 { try publish("\(number).0.0", number) }
        try publish("4.0.0", 4, options: "--rollout 10")
        #expect(try keep(1) == ["3.0.0", "4.0.0"])
    }

    @Test func `without a release for all machines, those of every rollout stay`() throws {
        for (number, share) in [(1, 0), (2, 30), (3, 50), (4, 10)] {
            try publish("\(number).0.0", number, options: "--rollout \(share)")
        }
        #expect(try keep(1) == ["2.0.0", "3.0.0", "4.0.0"])
    }

    @Test func `older apps find the newest release that is compatible with them`() throws {
        try publish("1.0.0", 1, app: "<3")
        try publish("2.0.0", 2, app: "<3")
        try publish("3.0.0", 3, app: ">=3")
        try publish("4.0.0", 4, app: ">=3")
        #expect(try keep(1) == ["2.0.0", "4.0.0"])
    }

    @Test func `new stores of an older app find a release while the newest one for it is being rolled out`() throws {
        try publish("1.0.0", 1, app: "<2")
        try publish("2.0.0", 2, app: ">=2")
        try publish("1.0.1", 3, app: "<2", options: "--rollout 10")
        #expect(try keep(1) == ["1.0.0", "1.0.1", "2.0.0"])
    }

    @Test(arguments: ["--withdraw 2.0.0 --reason 'wrong names'", "--release 2.0.0 --rollout 50"])
    func `a change after which stores cannot update to the newest release is a warning`(change: String) throws {
        try publish("1.0.0", 1)
        try publish("2.0.0", 2)
        try publish("3.0.0", 3, from: ">=2")
        let warning = """
            moult: warning: stores with 1.0.0 cannot update to 3.0.0: it requires an installed version >=2, and no release for all \
            machines leads to one

            """
        #expect(try bench.run("moult publish public -k a.key --dry-run \(change)").output.contains("cannot update"))
        #expect(try bench.run("moult publish -q public -k a.key \(change)").errors == warning)
        #expect(try bench.run("moult publish -q public -k a.key").errors == "")
        // Such a release as the next one.
        try bench.release("4.0.0", sequence: 4, top: [.init("requires", ["from": ">=4"])])
        #expect(
            try bench.run("moult publish -q public rel/test-4.0.0.json -k a.key").errors.contains(
                "warning: stores with 1.0.0, 2.0.0, 3.0.0 cannot update to 4.0.0: "))
    }

    @Test func `each channel keeps its own newest releases`() throws {
        for number in 1...3 { try publish("\(number).0.0", number) }
        for number in 4...6 { try publish("\(number).0.0-b", number, options: "--channel beta") }
        #expect(try keep(2) == ["2.0.0", "3.0.0", "5.0.0-b", "6.0.0-b"])
    }

    @Test func `a store with an old key can catch up, because key lists stay in the feed`() throws {
        try publish("1.0.0", 1)
        try bench.must("moult init -q --product org.example.test --key a.pub --feed public/feed.json && moult apply -q")
        try bench.key("b")
        try bench.must("moult publish -q public -k a.key -k b.key --trust b.pub")
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish -q public rel/test-2.0.0.json -k b.key --keep-releases 1")
        #expect(try versions() == ["2.0.0"])
        try bench.must("moult apply -q && moult publish public --check --trust a.pub -q")
        #expect(try bench.installed() == "2.0.0")
    }

    /// Publishes many releases, always with the same option.
    @Test func `the size of a feed does not grow without limit`() throws {
        var sizes: [Int] = []
        for number in 1...7 {
            try publish("1.0.\(number)", number, options: "--keep-releases 3")
            // It also has the digests of up to 16 feeds before it.
            sizes.append(try bench.feed().setting("previous", to: nil).pretty.utf8.count)
        }
        #expect(try versions() == ["1.0.5", "1.0.6", "1.0.7"])
        // The feed grows only because its numbers get longer.
        #expect(sizes[6] - sizes[2] < 40)
        for _ in 0..<12 { try bench.must("moult publish -q public -k a.key") }
        #expect(try bench.feed()["previous"]?.array?.count == 16)
    }

    @Test func `if publish is killed while it removes files, the next publish removes the rest`() throws {
        for number in 1...3 { try publish("\(number).0.0", number) }
        try bench.must("cp -r public before")
        var killed = 0
        for number in 1...8 {
            try bench.must("rm -rf public; cp -r before public")
            let ended = try bench.run(
                "strace -f -qq -o /dev/null -e trace=unlink,unlinkat -e inject=unlink,unlinkat:signal=SIGKILL:when=\(number) moult publish public -q -k a.key --keep-releases 1"
            )
            if ended.status != 0 { killed += 1 }
            try bench.must("moult publish public -q -k a.key --keep-releases 1 && moult publish public -q --check")
            #expect(try versions() == ["3.0.0"])
            #expect(try Files.list(bench.path("public")).filter { $0.hasSuffix(".zst") } == ["test-3.0.0.tar.zst"])
        }
        #expect(killed > 3)
    }
}
