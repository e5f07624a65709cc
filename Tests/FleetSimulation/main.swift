import MoultBasics
import MoultFiles
import MoultLibc
import Synchronization

// Simulates a week of many machines that follow a feed on two mirrors. Releases are chosen by the code that stores use. Prints
// JSON.
//   FleetSimulation MACHINES SEED staged|at-once IDLE-REQUESTS IDLE-BYTES FEED-REQUESTS FEED-BYTES RELEASE-REQUESTS RELEASE-BYTES
let words = CommandLine.arguments.dropFirst()
let numbers = words.compactMap { Int($0) }
guard numbers.count == 8, words.count == 9, let count = numbers.first, count > 0 else {
    print("FleetSimulation requires eight numbers and the kind of rollout (staged or at-once)")
    exit(64)
}
func cost(_ index: Int) -> Cost { Cost(requests: numbers[index], bytes: numbers[index + 1]) }
let fleet = try Fleet(
    story: Story(fixesAtOnce: words.contains("at-once")),
    costs: Costs(idle: cost(2), feed: cost(4), release: cost(6)), seed: numbers[1])

let tally = try fleet.run(machines: count)

/// Returns the maximum and the total in each span of this many seconds.
func spans(_ values: ArraySlice<Int32>, of seconds: Int) -> [JSON] {
    stride(from: 0, to: values.count, by: seconds).map { start in
        let span = values[(values.startIndex + start)..<min(values.startIndex + start + seconds, values.endIndex)]
        return .array([.size(Int(span.max() ?? 0)), .size(span.reduce(0) { $0 + Int($1) })])
    }
}
let week = 0..<Story.length
let json: JSON = [
    "machines": .size(count), "decisions": .size(tally.decisions),
    "outage": .array([.size(fleet.story.outage.lowerBound), .size(fleet.story.outage.upperBound)]),
    "withdrawal": .size(fleet.story.withdrawal),
    "changes": .array(fleet.story.changes.map { .size($0.time) }),
    // For each half hour, the maximum per second and the total.
    "requests": .array(tally.requests.map { .array(spans($0[week], of: 1800)) }),
    "failed": .array(spans(tally.failed[week], of: 1800)),
    "bytes": .array(tally.bytes.map { .array($0.dropLast().map { .size($0) }) }),
    "releases": .array(tally.machines.map { .array($0.map { .size($0) }) }),
    "withdrawn": .size(tally.gotWithdrawn), "left": .array(tally.left.map { .size($0) }),
]
print(json.line)
