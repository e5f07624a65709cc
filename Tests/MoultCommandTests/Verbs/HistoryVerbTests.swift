import MoultBasics
import TestSupport
import Testing

@testable import MoultCommand

/// The times of the phases of updates in JSON, in text and on a page.
@Suite struct HistoryVerbTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    @Test func `every history entry contains the times of its phases`() throws {
        try world.install(world.first, world.second)
        try world.must("moult rollback -q")
        let entries = try #require(try world.json("moult history --json").first?["entries"]?.array)
        try #require(entries.count == 3)
        for entry in entries {
            let parts = try #require(entry["parts"]?.array)
            let names = parts.compactMap { $0["name"]?.string }
            for step in ["version-check", "copy", "attach", "verify", "decide"] {
                #expect(names.contains(step), "\(entry["action"]?.string ?? "") has no \(step): \(names)")
            }
            #expect(names.contains("unpack") == (entry["action"]?.string == "update"))
            #expect(Set(parts.compactMap { $0["pass"]?.string }) == ["prepare", "apply"])
            // The times of the phases do not exceed the total.
            let sum = parts.reduce(0) { $0 + ($1["microseconds"]?.integer ?? 0) }
            #expect(sum > 0)
            #expect(sum <= ((entry["milliseconds"]?.integer ?? 0) + 1) * 1000)
        }
        let text = try world.must("moult history -v -n 1")
        #expect(text.contains(" prepare: "))
        #expect(text.contains(" apply: "))
        #expect(try world.must("moult history -n 1").split(separator: "\n").count == 1)
    }

    @Test func `the history page shows the times of the phases`() throws {
        try world.install(world.first, world.second)
        try world.must("moult rollback -q --reason '<b>&\"'")
        try world.must("moult history -q --html h.html")
        let page = try world.scratch.text("h.html")
        #expect(page.hasPrefix("<!DOCTYPE html>\n"))
        #expect(page.contains("<title>org.example.test: history</title>"))
        for what in ["rollback 2.0.0 → 1.0.0", "update 1.0.0 → 2.0.0", "update nothing → 1.0.0"] {
            #expect(page.contains("<h2>\(what) </h2>"))
        }
        // The page has one section for each update, and the diagram.
        #expect(page.ranges(of: "<section").count == 4)
        #expect(page.ranges(of: "</section>").count == 4)
        #expect(page.ranges(of: "<div class=time").count == 3)
        // Kinds of commands differ in pattern, too, and a legend names them.
        #expect(page.ranges(of: "<a class=\"k0\"").count == 2 && page.ranges(of: "<a class=\"k1\"").count == 1)
        #expect(page.contains("<i class=k0></i>updates") && page.contains("<i class=k1></i>rollbacks"))
        #expect(page.ranges(of: "<p class=axis>").count == 2)
        #expect(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"))
        // A page may be overwritten, other files may not.
        try world.must("moult history -q --html h.html; echo text > t")
        #expect(try world.run("moult history -q --html t").status == 1)
        #expect(try world.scratch.text("t") == "text\n")
    }

    @Test func `untrusted text is escaped on the history page`() throws {
        try world.install(world.first)
        try world.must(
            """
            printf '%s\\n' '{"time":"2026-01-01T00:00:00Z","transaction":"t","action":"<i>","to":"1.0.0+00000000","outcome":"failed","reason":"<script>","remedy":"&"}' >> store/.moult/history.jsonl
            moult history -q --html h.html
            """)
        let page = try world.scratch.text("h.html")
        #expect(page.contains("<h2>&lt;i&gt; nothing → 1.0.0 <span class=\"badge removed\">failed</span></h2>"))
        #expect(page.contains("<p class=note>&lt;script&gt;</p>\n<p class=note>&amp;</p>\n"))
    }
}

/// Histories that are longer than the block that is read into memory at once.
@Suite struct LongHistoryTests {
    private let world: VerbWorld

    init() throws {
        world = try VerbWorld()
        try world.install(world.first)
        // The line of the update, repeated many times, each time with a different transaction.
        try world.must(
            """
            python3 - <<'END'
            import json
            path = "store/.moult/history.jsonl"
            line = json.loads(open(path).read().splitlines()[0])
            with open(path, "a") as out:
                for number in range(1, 1501):
                    out.write(json.dumps(line | {"transaction": f"20200101000000-{number:08x}"}) + "\\n")
            END
            """)
    }

    @Test func `a long history is listed completely, with the newest entry first`() throws {
        let history = try world.json("moult history --json -n 1000000")
        try #require(history.count == 1)
        let numbers = try #require(history[0]["entries"]?.array).map { $0["transaction"]?.string ?? "" }
        #expect(numbers.count == 1501)
        #expect(numbers.first == "20200101000000-000005dc" && numbers[1499] == "20200101000000-00000001")
        #expect(history[0]["torn"]?.integer == 0)
        let text = try world.must("moult history -n 1000000").split(separator: "\n")
        #expect(text.count == 1501 && Set(text).count == 1)
        #expect(try world.must("moult history -n 700").split(separator: "\n").count == 700)
        #expect(try world.must("moult history -n 700 -q") == "")
    }
}
