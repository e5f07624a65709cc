import MoultBasics
import StepKit
import TestSupport
import Testing

@Suite(.tags(.thorough)) struct LargeFeedTests {
    /// The feed is within the size limit, and the store finds the newest release.
    @Test func `a feed of ten thousand releases is accepted`() throws {
        let bench = try Bench()
        try bench.follow(["1.0.0"])
        try bench.replaceFeed { feed in
            let first = feed["releases"]?.array?[0] ?? .null
            let more = (2...10_000).map { number in
                first.setting("version", to: .string("1.0.\(number)")).setting("sequence", to: .size(number))
                    .setting("requires", to: ["from": .string(">=1.0.\(number - 1)")])
            }
            return feed.setting("releases", to: .array([first] + more))
        }
        let size = try bench.feed().pretty.utf8.count
        #expect(size < Feed.largest)
        let check = try JSON(parsing: bench.run("moult check --json").output, source: "check")
        #expect(check["available"]?.string == "1.0.10000")
    }

    /// The right key has signed the feed, but moult does not read beyond the limit.
    @Test func `a feed of more than 32 MiB is refused`() throws {
        let bench = try Bench()
        try bench.follow(["1.0.0"])
        for (spare, status) in [(Feed.largest, Int32(0)), (Feed.largest + 1, 3)] {
            try bench.must("rm public/feed.json*.minisig")
            // White space at the end counts as part of the document.
            try bench.must(
                "python3 -c 'import os; p=\"public/feed.json\"; n=\(spare)-os.path.getsize(p); open(p,\"ab\").write(b\" \"*n)'"
            )
            try bench.must("moult sign public/feed.json -k a.key -q")
            let ended = try bench.run("moult apply -q")
            #expect(ended.status == status)
            if status != 0 { #expect(ended.errors.contains("larger than 32.0 MiB")) }
        }
    }

    @Test func `a manifest of more than one MiB is refused`() throws {
        for (size, status) in [(Manifest.largest, Int32(0)), (Manifest.largest + 1, 1)] {
            let bench = try Bench()
            let manifest = try bench.release("1.0.0", sequence: 1)
            try bench.must("moult init --product org.example.test -q")
            try bench.must(
                "python3 -c 'import os; p=\"\(manifest)\"; n=\(size)-os.path.getsize(p); open(p,\"ab\").write(b\" \"*n)'"
            )
            let ended = try bench.run("moult apply -q \(manifest)")
            #expect(ended.status == status)
            if status != 0 { #expect(ended.errors.contains("larger than 1.00 MiB")) }
        }
    }
}
