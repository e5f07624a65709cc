import Moult
import MoultBasics
import MoultFiles
import Synchronization
import TestSupport
import Testing

/// Tests the schedule of updates with a clock of the test, and the log.
@Suite struct ScheduleAndLogTests {
    /// A clock that the sleeper moves.
    final class TestClock: _Concurrency.Clock {
        struct Instant: InstantProtocol {
            var offset: Duration
            func advanced(by duration: Duration) -> Self { .init(offset: offset + duration) }
            func duration(to other: Self) -> Duration { other.offset - offset }
            static func < (one: Self, other: Self) -> Bool { one.offset < other.offset }
        }

        private let state = Mutex<(now: Duration, pauses: [Duration])>((.zero, []))
        let limit: Int
        init(limit: Int) { self.limit = limit }
        var now: Instant { Instant(offset: state.withLock(\.now)) }
        let minimumResolution = Duration.nanoseconds(1)
        var pauses: [Duration] { state.withLock(\.pauses) }

        func sleep(until deadline: Instant, tolerance: Duration?) async throws {
            let isOver = state.withLock { state in
                state.pauses.append(deadline.offset - state.now)
                state.now = deadline.offset
                return state.pauses.count > limit
            }
            if isOver { throw CancellationError() }
        }
    }

    let shop: ConsumerShop

    init() throws { shop = try ConsumerShop() }

    @Test func `attempts follow each other by the schedule, also after failures`() async throws {
        try await shop.store.update(to: shop.release(1))
        try shop.store.setFeed(shop.scratch.path("missing"))
        let clock = TestClock(limit: 3)
        let results = Mutex(0)
        let schedule = UpdateSchedule(every: .seconds(3600), jitter: .seconds(60))
        await #expect(throws: CancellationError.self) {
            try await shop.store.follow(schedule, clock: clock) { result in
                if case .failure = result { results.withLock { $0 += 1 } }
            }
        }
        #expect(results.withLock(\.self) == 3)
        #expect(clock.pauses.count == 4)
        for pause in clock.pauses { #expect(pause >= .seconds(3590) && pause <= .seconds(3660), "\(pause)") }
    }

    @Test func `the first attempt waits for the rest of the interval`() {
        let schedule = UpdateSchedule(every: .seconds(100), jitter: .seconds(10))
        #expect(schedule.pause(since: nil, random: 0.5) == .seconds(5))
        #expect(schedule.pause(since: .seconds(30), random: 0) == .seconds(70))
        #expect(schedule.pause(since: .seconds(300), random: 1) == .seconds(10))
        #expect(UpdateSchedule(every: .zero, jitter: .seconds(-1)) == UpdateSchedule(every: .seconds(1), jitter: .zero))
    }

    @Test func `a cancelled task ends the schedule`() async throws {
        try await shop.store.update(to: shop.release(1))
        let store = shop.store
        let task = Task { try await store.follow(UpdateSchedule()) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `the log has what a store does`() async throws {
        let entries = Mutex<[StoreLog.Entry]>([])
        let store = Store(at: shop.root, log: StoreLog { entry in entries.withLock { $0.append(entry) } })
        let update = try await store.update(to: shop.release(1))
        try await store.update(to: shop.release(1))
        await #expect(throws: MoultError.self) { try await store.update(to: "missing.json") }
        let all = entries.withLock(\.self)
        func texts(_ level: StoreLog.Level) -> [String] { all.filter { $0.level == level }.map(\.message) }
        #expect(texts(.info) == ["the update is decided"])
        #expect(texts(.notice).first == "the update has installed a release")
        #expect(texts(.debug).last == "the update had nothing to install")
        let failure = try #require(all.last { $0.message.hasPrefix("the update failed: ") })
        #expect(failure.metadata["code"]?.hasPrefix("E") == true)
        #expect(all.first { $0.level == .notice }?.metadata == ["generation": update.generation ?? ""])
        #expect(all.contains { $0.level == .debug && $0.metadata["database"] == "food" })
    }

    @Test func `setFeed writes one setting, and refuses to lose comments`() throws {
        try shop.store.updateBlocking(to: shop.release(1))
        let settings = "\(shop.root)/moult.json"
        func text() throws -> String { String(decoding: try Files.read(settings, limit: 1 << 20) ?? [], as: UTF8.self) }
        try shop.store.setFeed("https://example.org/feed.json", channel: "beta")
        let json = try JSON(parsing: Array(text().utf8), source: settings)
        #expect(json["feed"] == ["url": "https://example.org/feed.json", "channel": "beta"])
        #expect(json["follow"] == "match")
        try shop.store.setFeed("https://example.org/feed.json")
        #expect(try JSON(parsing: Array(text().utf8), source: settings)["feed"]?["channel"] == "beta")
        // The other fields of a feed belong to its server.
        try Shell.must(["sed", "-i", "s/\"channel\": \"beta\"/\"channel\": \"beta\", \"patience\": 5/", settings])
        try shop.store.setFeed("https://example.org/feed.json", channel: "stable")
        #expect(
            try JSON(parsing: Array(text().utf8), source: settings)["feed"]
                == ["url": "https://example.org/feed.json", "patience": 5])
        try shop.store.setFeed("https://example.net/feed.json")
        #expect(
            try JSON(parsing: Array(text().utf8), source: settings)["feed"] == ["url": "https://example.net/feed.json"])
        #expect(throws: MoultError.self) { try shop.store.setFeed("") }
        try shop.store.setFeed(nil)
        #expect(try JSON(parsing: Array(text().utf8), source: settings)["feed"] == nil)
        try Files.replace(settings, with: Array(("// mine\n" + text()).utf8))
        let before = try text()
        #expect(throws: MoultError.self) { try shop.store.setFeed("https://example.org/feed.json") }
        #expect(try text() == before)
        let other = Store(at: shop.scratch.path("other"))
        #expect(throws: MoultError.self) { try other.setFeed("https://example.org/feed.json") }
        try other.setFeed("https://example.org/feed.json", product: "org.example.test")
        #expect(try other.status().product == "org.example.test")
    }
}
