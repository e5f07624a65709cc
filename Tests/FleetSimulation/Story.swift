import MoultBasics
import StepKit

/// The actions of the publisher and of the servers in a week. Times are seconds since midnight on Monday.
struct Story {
    struct Change {
        let time: Int
        let feed: Feed
    }

    /// The changes in order, each with the feed that is public from then on.
    let changes: [Change]
    /// The time during which the first mirror does not respond.
    let outage: Range<Int>
    /// The time when 2.0.0 is withdrawn.
    let withdrawal: Int

    static let versions = ["1.0.0", "2.0.0", "2.0.1"]
    static let day = 86_400
    static let length = 7 * day

    /// 2.0.0 goes to 1 and 10 % of the machines, and is withdrawn. 2.0.1 goes to 1, 10, 50 and 100 %, or to all
    /// machines at once. The publisher also renews the feed each morning.
    init(fixesAtOnce: Bool) throws {
        func at(_ day: Int, _ hour: Int) -> Int { day * Self.day + hour * 3600 }
        outage = at(3, 10)..<at(3, 14)
        withdrawal = at(1, 17)
        let old = Self.release(0, rollout: 100)
        let rollouts: [(time: Int, share: Int)] =
            fixesAtOnce ? [(at(2, 10), 100)] : [(at(2, 10), 1), (at(2, 16), 10), (at(3, 10), 50), (at(4, 10), 100)]
        var states: [(time: Int, releases: [Feed.Release])] =
            [
                (0, [old]), (at(1, 9), [old, Self.release(1, rollout: 1)]),
                (at(1, 13), [old, Self.release(1, rollout: 10)]),
                (withdrawal, [old, Self.release(1, rollout: 10, withdrawn: "wrong names")]),
            ]
            + rollouts.map {
                (
                    $0.time,
                    [
                        old, Self.release(1, rollout: 10, withdrawn: "wrong names"), Self.release(2, rollout: $0.share),
                    ]
                )
            }
        for day in 1..<7 {
            let time = at(day, 6)
            if let last = states.last(where: { $0.time < time }) { states.append((time, last.releases)) }
        }
        states.sort { $0.time < $1.time }
        changes = states.enumerated().map { index, state in
            Change(
                time: state.time,
                feed: Feed(
                    product: "org.example.fleet", serial: index + 1, created: nil,
                    expires: Timestamp(seconds: 30 * Self.day), releases: state.releases))
        }
    }

    private static func release(_ index: Int, rollout: Int, withdrawn: String? = nil) -> Feed.Release {
        Feed.Release(
            version: Version(versions[index]) ?? Version(index + 1, 0, 0), sequence: index + 1,
            manifest: .init(
                name: "fleet-\(versions[index]).json", size: 1000, sha256: String(repeating: "0", count: 64)),
            rollout: rollout, withdrawn: withdrawn)
    }
}
