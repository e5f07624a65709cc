import MoultBasics
import MoultFeed
import StepKit
import TestSupport
import Testing

@Suite struct LargeFeedTests {
    /// Ten thousand releases fit into what is read, and the newest of them is found.
    @Test func tenThousandReleases() throws {
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
        #expect(check["newest"]?.string == "1.0.10000")
    }
}
