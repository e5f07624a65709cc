import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Many machines follow one feed. Tests which machines get a release first, and when each machine requests the feed.
@Suite struct SpreadTests {
    private let bench: Bench
    init() throws {
        bench = try Bench()
        try bench.follow(["1.0.0"])
    }

    /// The position of a machine in a rollout is computed as defined, and the definition must never change: otherwise,
    /// after an update of moult, different machines would get a release first, and a release would reach more machines
    /// than its publisher allowed.
    @Test func `the position of a machine depends on its ID and the version`() throws {
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish -q public rel/test-2.0.0.json -k a.key --rollout 0")
        for machine in ["machine-1", "0123456789abcdef0123456789abcdef", "æøå"] {
            let expected = try bench.must(
                #"""
                python3 -c '
                import hashlib, sys
                digest = hashlib.sha256(("org.example.test\n2.0.0\n" + sys.argv[1]).encode()).digest()
                print((int.from_bytes(digest[:4], "big") * 10000 >> 32) / 100)' \#(machine)
                """#)
            let said = try bench.run("moult check", environment: ["MOULT_MACHINE_ID": machine]).output
            #expect(said.contains("this machine is included from \(expected.split(separator: "\n")[0]) %"), "\(said)")
        }
    }

    @Test func `the position of a machine does not change with the feed`() throws {
        func places(_ version: String, in store: String = "store") throws -> [String] {
            try (1...5).map { number in
                let said = try bench.run(
                    "moult check --store \(store)", environment: ["MOULT_MACHINE_ID": "machine-\(number)"]
                ).output
                let line = try #require(said.split(separator: "\n").first { $0.contains("\(version) is skipped") })
                return String(try #require(line.split(separator: " ").suffix(2).first))
            }
        }
        try bench.release("2.0.0", sequence: 2)
        try bench.must("moult publish -q public rel/test-2.0.0.json -k a.key --rollout 0")
        let before = try places("2.0.0")
        #expect(Set(before).count == 5)
        // The position does not depend on the serial, keys or other releases of the feed, or on the store and its
        // installed release.
        try bench.key("b")
        try bench.release("3.0.0", sequence: 3)
        try bench.must(
            "moult publish -q public -k a.key; moult publish -q public rel/test-3.0.0.json -k a.key --rollout 0")
        try bench.must("moult publish -q public -k a.key -k b.key --trust b.pub && moult apply -q")
        #expect(try places("2.0.0") == before)
        try bench.must("moult init -q other --product org.example.test --key a.pub --feed public/feed.json")
        #expect(try places("2.0.0", in: "other") == before)
        // The order of the machines is different for another release.
        #expect(try places("3.0.0") != before)
    }

    @Test func `a store waits for its turn, which differs by machine, store and serial`() throws {
        try bench.must("moult apply -q")
        func milliseconds(_ machine: String, store: String = "store") throws -> Double {
            let begun = ContinuousClock.now
            try bench.must("MOULT_MACHINE_ID=\(machine) moult apply -q --spread 2 --store \(store)")
            return (ContinuousClock.now - begun) / .milliseconds(1)
        }
        /// Computes the pause as it is defined.
        func pause(_ machine: String, serial: Int) throws -> Double {
            let text = "\(serial)\n\(machine)\n\(bench.path("store"))"
            return try #require(
                Double(
                    bench.must(
                        "printf '\(text)' | python3 -c 'import hashlib, sys; print(int.from_bytes(hashlib.sha256(sys.stdin.buffer.read()).digest()[:4], \"big\") * 2000 >> 32)'"
                    ).split(separator: "\n")[0]))
        }
        for machine in ["a", "b", "c"] {
            #expect(try milliseconds(machine) >= pause(machine, serial: 1))
        }
        let (first, second) = (try pause("a", serial: 1), try pause("a", serial: 2))
        #expect(first != second)
        try bench.must("moult publish -q public -k a.key && moult check -q")
        #expect(try milliseconds("a") >= second)
    }

    @Test func `apply without --spread, at a terminal, or for the first release does not wait`() throws {
        // If one of these commands paused, `timeout` would end it.
        try bench.must("timeout 20 moult apply -q --spread 86400")
        try bench.must("timeout 20 moult apply -q")
        try bench.must("timeout 20 script -qec 'moult apply -q --spread 86400' /dev/null")
        try bench.must("timeout 20 moult apply -q --create --store new --key a.pub --spread 86400 public")
    }
}
