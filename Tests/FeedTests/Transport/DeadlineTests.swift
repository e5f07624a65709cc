import MoultBasics
import MoultFiles
import MoultLibc
import MoultTransport
import TestSupport
import Testing

/// Slow servers: moult stops a transfer at each of its limits, and then tries the next mirror.
@Suite struct DeadlineTests {
    private let scratch: Scratch
    private let good: WebServer

    init() throws {
        scratch = try Scratch()
        try scratch.directory("public")
        good = try WebServer(scratch.path("public"))
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        _ = try maker.make("1.0.0", sequence: 1, [.reference("food", World.table("food", "1.0.0"))])
        try must("moult keygen a --no-password -q && moult publish public rel/test-1.0.0.json -k a.key -q")
    }

    private func run(_ line: String) throws -> Shell.Ended { try scratch.run(line) }
    private func must(_ line: String, status: Int32 = 0) throws { try scratch.must(line, status: status) }

    private func follow(_ urls: [String], _ limits: [String: Int]) throws {
        try must("moult init -q --product org.example.test --key a.pub --feed \(urls[0])")
        let settings = scratch.path("store/moult.json")
        let json = try JSON(parsing: try Files.read(settings, limit: 1 << 20) ?? [], source: settings)
        var feed = try #require(json["feed"])
        for (name, value) in limits { feed = feed.setting(name, to: .size(value)) }
        feed = feed.setting("mirrors", to: .array(urls.dropFirst().map { .string($0) }))
        try Files.replace(settings, with: Array(json.setting("feed", to: feed).pretty.utf8))
    }

    private func isInstalled() throws -> Bool { try Files.factsThroughLinks(scratch.path("store/food.db")) != nil }

    /// If the rate stays below the minimum, moult gives up after `patience`, whichever file is sent.
    @Test(arguments: ["feed.json", "feed.json.minisig", "test-1.0.0.json", ".tar.zst"])
    func `a server below the minimum rate is abandoned for the next mirror`(_ file: String) throws {
        let slow = try ScriptedServer(scratch.path("public"), .drip(bytesPerSecond: 20, only: file))
        try follow([slow.url("feed.json"), good.url("feed.json")], ["patience": 1])
        try must("moult apply -q")
        #expect(try isInstalled())
        #expect(try slow.requests().contains { $0.path.hasSuffix(file) })
    }

    /// The deadline for a file ends the transfer from a server above the minimum rate.
    @Test(arguments: ["feed.json", ".tar.zst"])
    func `a server that exceeds the time for a file is abandoned for the next mirror`(_ file: String) throws {
        let slow = try ScriptedServer(scratch.path("public"), .drip(bytesPerSecond: 20, only: file))
        try follow([slow.url("feed.json"), good.url("feed.json")], ["minimumRate": 1, "fileDeadline": 1])
        try must("moult apply -q")
        #expect(try isInstalled())
    }

    /// Each of two mirrors gets a share of the time, so the second mirror is always tried.
    @Test func `a slow mirror does not use up the time of the next one`() throws {
        let slow = try ScriptedServer(scratch.path("public"), .drip(bytesPerSecond: 20, only: ".json"))
        try follow([slow.url("feed.json"), good.url("feed.json")], ["minimumRate": 1, "deadline": 4])
        try must("moult apply -q")
        #expect(try isInstalled())
    }

    @Test func `a command ends at its deadline`() throws {
        let slow = try ScriptedServer(scratch.path("public"), .drip(bytesPerSecond: 20, only: ".json"))
        try follow([slow.url("feed.json")], ["minimumRate": 1, "deadline": 1])
        let ended = try run("moult apply -q")
        #expect(ended.status == 75)
        #expect(
            ended.errors == """
                moult: error: cannot get \(slow.url("feed.json")): the request took longer than the time limit
                  Try again later. The limits are "fileDeadline" and "deadline" under "feed" in moult.json.

                """)
        #expect(try !isInstalled())
    }

    @Test func `an endless header is refused at once`() throws {
        let endless = try ScriptedServer(scratch.path("public"), .endlessHeader)
        try follow([endless.url("feed.json")], [:])
        let ended = try run("moult check")
        #expect(ended.status == 1)
        #expect(
            ended.errors == """
                moult: error: cannot get \(endless.url("feed.json")): the response header is larger than 64.0 KiB
                  Check the address and the network.

                """)
    }

    @Test func `a pause that the server requests is respected`() throws {
        let later = try ScriptedServer(scratch.path("public"), .retryAfter("1", times: 1))
        try follow([later.url("feed.json")], [:])
        let start = ContinuousClock.now
        try must("moult check", status: 2)
        #expect(ContinuousClock.now - start >= .seconds(1))
        #expect(try later.requests().prefix(2).map(\.path) == ["/feed.json", "/feed.json"])
    }

    /// If a pause is longer than the remaining time, the next mirror is tried at once.
    @Test(arguments: ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"])
    func `a command does not wait for a pause that ends after the deadline of the command`(_ pause: String) throws {
        let later = try ScriptedServer(scratch.path("public"), .retryAfter(pause, times: 1000))
        try follow([later.url("feed.json"), good.url("feed.json")], [:])
        try must("moult apply -q")
        #expect(try isInstalled())
        #expect(try later.requests().count == 1)
    }
}
