import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Random histories of a feed: publishers on two machines, three lines, two channels, rollouts, groups, promotions, withdrawals, renewals,
/// lost uploads, races, changes of keys, thieves, replays, and 20 stores each.
///
/// Every store reaches the newest release that is offered to it, no release that was published is lost, no older feed is
/// accepted, no release lacks the patch from another one that the feed offers, no dropped release takes away the way to the newest
/// one, and a store that followed a thief returns with the first feed under new keys.
@Suite struct FeedModelTests {
    /// The numbers of the histories: 500, of which `make test` tries some, or those in MOULT_HISTORIES (`make histories`).
    private static let seeds: [Int] = {
        let bounds =
            getenv("MOULT_HISTORIES").map { String(cString: $0).split(separator: "-").compactMap { Int($0) } } ?? []
        return Array(bounds.count == 2 ? bounds[0]..<bounds[1] : 0..<500)
    }()

    private static func history(_ seed: Int) -> [FeedModel.Step] {
        var random = SeededRandom(seed &* 7919)
        var steps: [FeedModel.Step] = []
        for number in 1...Int.random(in: 6...24, using: &random) {
            let machine = Int.random(in: 0...1, using: &random)
            let pick = Int.random(in: 0...1000, using: &random)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<30:
                steps.append(
                    .publish(
                        machine: machine, line: pick % 3 + 1, patch: number,
                        channel: random.pick(["stable", "stable", "beta"]),
                        rollout: random.pick([100, 100, 50, 10, 0]), groups: pick % 3 == 0 ? ["canaries"] : [],
                        app: random.chance(30),
                        from: random.chance(40) ? pick : nil))
            case 30..<40: steps.append(.roll(machine: machine, pick: pick, to: random.pick([0, 30, 100])))
            case 40..<46: steps.append(.withdraw(machine: machine, pick: pick))
            case 46..<50: steps.append(.renew(machine: machine))
            case 50..<53: steps.append(.promote(machine: machine, pick: pick, rollout: pick % 2 == 0 ? 100 : 30))
            case 53..<54: steps.append(.renewOften(machine: machine))
            case 54..<56: steps.append(.keepPatches(machine: machine, count: pick % 3))
            case 56..<60: steps.append(.keep(machine: machine, count: pick % 3 + 1))
            case 60..<64: steps.append(.rotate(machine: machine))
            case 64..<70: steps.append(.fail(machine: machine, file: pick % 6))
            case 70..<76: steps.append(.race(machine: machine, patch: number))
            case 76..<80: steps.append(.steal(serial: random.pick([1, 2, 900, 999_999])))
            case 80..<86: steps.append(.recover(machine: machine))
            case 86..<92: steps.append(.replay(pick: pick, store: pick % 20))
            default: steps.append(.wait(hours: random.pick([1, 24, 200, 400])))
            }
            for _ in 0..<2 { steps.append(.poll(store: Int.random(in: 0..<20, using: &random))) }
        }
        return steps
    }

    /// Returns why a history violates the rules; nil if it does not.
    private static func fault(_ steps: [FeedModel.Step], _ seed: Int) -> String? {
        do {
            let model = try FeedModel(seed: seed)
            for (index, step) in steps.enumerated() {
                do { try model.perform(step) } catch { return "step \(index + 1), \(step): \(error)" }
            }
            try model.finish()
            return nil
        } catch { return "\(error)" }
    }

    /// Removes steps as long as the history still violates the rules.
    private static func shrunk(_ steps: [FeedModel.Step], _ seed: Int) -> [FeedModel.Step] {
        var (steps, size) = (steps, steps.count / 2)
        while size > 0 {
            var start = 0
            while start < steps.count {
                let fewer = Array(steps[..<start] + steps[min(start + size, steps.count)...])
                if fault(fewer, seed) != nil { steps = fewer } else { start += size }
            }
            size /= 2
        }
        return steps
    }

    @Test(.tags(.sampled), arguments: seeds.sampled(15))
    func `a random history keeps the rules of a feed`(seed: Int) {
        let steps = Self.history(seed)
        guard Self.fault(steps, seed) != nil else { return }
        let fewer = Self.shrunk(steps, seed)
        let script = fewer.map { "    \($0)" }.joined(separator: "\n")
        Issue.record("seed \(seed): \(Self.fault(fewer, seed) ?? "")\n\(script)")
    }
}
