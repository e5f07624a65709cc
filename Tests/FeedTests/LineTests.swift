import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Releases of several lines: the newest version that the feed offers to a store wins, whatever the order of publishing.
@Suite struct LineTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.key("a")
    }

    private func line(_ number: Int) -> [JSON.Member] {
        [.init("requires", ["app": .string(">=\(number) <\(number + 1)")])]
    }

    private func store(_ name: String, app: String?) throws {
        try bench.must(
            "moult init \(name) -q --product org.example.test --key a.pub --feed public/feed.json \(app.map { "--app \($0)" } ?? "")"
        )
    }

    private func version(_ store: String) throws -> String {
        try bench.must(
            "moult status --store \(store) --json | python3 -c 'import json,sys; print(json.load(sys.stdin).get(\"installed\"))'"
        )
        .split(separator: "\n").joined()
    }

    @Test func `a hotfix of an older line is published after a newer line`() throws {
        try bench.release("1.0.3", sequence: 1, top: line(1))
        try bench.release("2.0.0", sequence: 2, top: line(2))
        try bench.release("1.0.4", sequence: 3, top: line(1))
        try bench.must("moult publish -q public rel/test-1.0.3.json rel/test-2.0.0.json -k a.key")
        for app in 1...2 {
            try store("app\(app)", app: "\(app).5.0")
            try bench.must("moult apply -q --store app\(app)")
        }
        try bench.must("moult publish -q public rel/test-1.0.4.json -k a.key")
        for app in 1...2 { try bench.must("moult apply -q --store app\(app)") }
        #expect(try version("app1") == "1.0.4")
        #expect(try version("app2") == "2.0.0")
        // An app of the second line updates from the hotfix, whose sequence is higher.
        try bench.must("moult apply -q --store app1 --app 2.0.0")
        #expect(try version("app1") == "2.0.0")
    }

    @Test func `releases of two lines may have the same sequence`() throws {
        try bench.release("1.0.4", sequence: 7)
        try bench.release("2.0.0", sequence: 7)
        try bench.must("moult publish -q public rel/test-1.0.4.json rel/test-2.0.0.json -k a.key")
        try store("store", app: nil)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "2.0.0")
    }

    @Test func `an older release outside a feed needs --allow-downgrade, whatever its sequence`() throws {
        try bench.release("2.0.0", sequence: 1)
        try bench.release("1.0.4", sequence: 9)
        try bench.must("moult sign -q rel/*.json -k a.key; moult publish -q public rel/test-2.0.0.json -k a.key")
        try store("store", app: nil)
        try bench.must("moult apply -q")
        #expect(
            try bench.refusal("moult apply rel/test-1.0.4.json", status: 3).contains(
                "is older than the installed 2.0.0"))
        try bench.must("moult apply -q rel/test-1.0.4.json --allow-downgrade")
    }

    @Test func `a store that does not know its app skips only the releases that require one`() throws {
        try bench.release("1.0.0", sequence: 1)
        try bench.release("2.0.0", sequence: 2, top: line(2))
        try bench.must("moult publish -q public rel/test-1.0.0.json -k a.key")
        try store("store", app: nil)
        let ended = try bench.run("moult publish public rel/test-2.0.0.json -k a.key")
        #expect(
            ended.errors == """
                moult: warning: 2.0.0 is the first release that requires a version of the app: stores that do not know the version of \
                their app ("app" in moult.json, or --app) skip it

                """)
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "1.0.0")
        #expect(
            try bench.must("moult check").contains(
                "2.0.0 is skipped: it requires app >=2 <3, and this store does not know the version of the app"))
        try bench.release("2.1.0", sequence: 3, top: line(2))
        #expect(try bench.run("moult publish public rel/test-2.1.0.json -k a.key").errors == "")
    }
}
