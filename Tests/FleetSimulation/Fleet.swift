import Moult
import MoultBasics
import MoultFiles
import StepKit
import Synchronization

/// The requests and bytes of one operation, measured with a real store.
struct Cost {
    let requests: Int
    let bytes: Int
}

struct Costs {
    /// A request for a feed that has not changed.
    let idle: Cost
    /// A request for a feed that has changed, or that comes from a different mirror than the last feed.
    let feed: Cost
    /// The download of a release.
    let release: Cost
}

/// The counts of a group of machines.
struct Tally {
    /// The requests in each second, by mirror; `failed` are the requests to which the failing mirror did not respond.
    var requests = [[Int32](repeating: 0, count: Story.length + 10), [Int32](repeating: 0, count: Story.length + 10)]
    var failed = [Int32](repeating: 0, count: Story.length + 10)
    /// The bytes in each minute, by mirror.
    var bytes = [[Int](repeating: 0, count: Story.length / 60 + 1), [Int](repeating: 0, count: Story.length / 60 + 1)]
    /// The machines on each release at the end of each hour.
    var machines = [[Int]](repeating: [0, 0, 0], count: Story.length / 3600)
    /// The machines that replace the withdrawn release, by the minute after the withdrawal.
    var left = [Int](repeating: 0, count: Story.length / 60)
    var gotWithdrawn = 0
    var decisions = 0

    mutating func add(_ other: Tally) {
        for mirror in 0..<2 {
            for index in requests[mirror].indices { requests[mirror][index] += other.requests[mirror][index] }
            for index in bytes[mirror].indices { bytes[mirror][index] += other.bytes[mirror][index] }
        }
        for index in failed.indices { failed[index] += other.failed[index] }
        for hour in machines.indices { for index in 0..<3 { machines[hour][index] += other.machines[hour][index] } }
        for index in left.indices { left[index] += other.left[index] }
        gotWithdrawn += other.gotWithdrawn
        decisions += other.decisions
    }

    mutating func count(_ cost: Cost, at second: Int, of mirror: Int) {
        requests[mirror][second] += Int32(cost.requests)
        bytes[mirror][min(second, Story.length - 1) / 60] += cost.bytes
    }
}

/// Machines whose timers start `moult apply --spread 3600` each hour.
struct Fleet {
    let story: Story
    let costs: Costs
    let seed: Int
    private let settings: FeedSettings
    private let holds: Holds
    private let policy: Policy
    /// The state of a store that has not seen a feed.
    private static let store = "/var/lib/fleet"
    private static let mirrors = ["https://a.example/feed.json", "https://b.example/feed.json"]
    /// The times of a store's requests to a server that does not respond, in seconds, with pauses of about the average
    /// length.
    private static let attempts = [0, 0, 1, 2]

    init(story: Story, costs: Costs, seed: Int) throws {
        (self.story, self.costs, self.seed) = (story, costs, seed)
        var settings = FeedSettings(url: Address(Self.mirrors[0]))
        settings.mirrors = [Self.mirrors.map { Address($0) }]
        self.settings = settings
        let empty = try StoreLayout(root: "/nowhere")
        holds = Holds.read(empty, Settings(product: "org.example.fleet", follow: .newer))
        policy = Policy(follow: .newer, appVersion: nil, moultVersion: moultVersion)
    }

    /// Simulates a week of this many machines, on two threads.
    func run(machines count: Int) throws -> Tally {
        let half = count / 2
        let other = Mutex<Result<Tally, any Error>?>(nil)
        let thread = try Threads.start {
            let result = Result {
                var own = Tally()
                try run(0..<half, &own)
                return own
            }
            other.withLock { $0 = result }
        }
        var tally = Tally()
        try run(half..<count, &tally)
        thread.wait()
        if let result = other.withLock({ $0 }) { tally.add(try result.get()) }
        return tally
    }

    /// Simulates a week of the machines with these numbers.
    private func run(_ numbers: Range<Int>, _ tally: inout Tally) throws {
        for number in numbers { try run(Machine(id: id(number)), &tally) }
    }

    private func run(_ machine: Machine, _ tally: inout Tally) throws {
        let first = try MirrorOrder(machine: machine, store: Self.store).addresses(of: settings)[0].description
        let favourite = Self.mirrors[0] == first ? 0 : 1
        // The installed release, the last feed seen, and its mirror.
        var (installed, seen, place) = (0, 0, favourite)
        var pause = try machine.pause(within: 3600, store: Self.store, serial: story.changes[0].feed.serial)
        for hour in 0..<Story.length / 3600 {
            let start = hour * 3600 + pause / 1000
            var (second, mirror) = (start, favourite)
            if favourite == 0, story.outage.contains(start) {
                for attempt in Self.attempts { tally.failed[start + attempt] += 1 }
                (second, mirror) = (start + 2, 1)
            }
            var current = seen
            while current + 1 < story.changes.count, story.changes[current + 1].time <= second { current += 1 }
            let isUnchanged = current == seen && mirror == place
            tally.count(isUnchanged ? costs.idle : costs.feed, at: second, of: mirror)
            if current != seen {
                let before = installed
                try decide(machine, story.changes[current].feed, &installed)
                tally.decisions += 1
                if installed != before { update(from: before, to: installed, at: second, mirror, &tally) }
                pause = try machine.pause(
                    within: 3600, store: Self.store, serial: story.changes[current].feed.serial)
            }
            (seen, place) = (current, mirror)
            tally.machines[hour][installed] += 1
        }
    }

    /// Chooses the next release with the code of real stores.
    private func decide(_ machine: Machine, _ feed: Feed, _ installed: inout Int) throws {
        let release = feed.releases[min(installed, feed.releases.count - 1)]
        let result = try FeedChoice(
            feed: feed, installed: release.version, channel: Feed.Release.defaultChannel,
            holds: holds, policy: policy, machine: machine
        ).choose()
        if let next = result.way.last { installed = next.sequence - 1 }
    }

    private func update(from old: Int, to new: Int, at second: Int, _ mirror: Int, _ tally: inout Tally) {
        tally.count(costs.release, at: second, of: mirror)
        if new == 1 { tally.gotWithdrawn += 1 }
        if old == 1 { tally.left[(second - story.withdrawal) / 60] += 1 }
    }

    /// Returns a machine ID: 32 hexadecimal digits, as in /etc/machine-id.
    private func id(_ number: Int) -> String {
        var state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(number)
        func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for word in [next(), next()] {
            for shift in stride(from: 60, through: 0, by: -4) { text.append(digits[Int((word >> UInt64(shift)) & 15)]) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
