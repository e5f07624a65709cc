import MoultBasics
import MoultLibc
import TestSupport
import Testing

/// A reader of untrusted bytes takes at most 13 times as long for its largest input as for a tenth of that. A quadratic one takes a
/// hundred times as long: an attacker could keep a store, or a publisher, busy with a small file.
///
/// The tests are divided so that `scripts/test` runs them in several processes.
@Suite(.tags(.thorough, .slow), .serialized) struct LinearTimeTests {
    private static let texts: Set = ["JSON", "draft JSON"]
    private static let manifests: Set = ["sealed manifest", "draft manifest"]
    private static let feeds: Set = ["feed", "choice after 0.0.1", "choice after 0.0.0-a"]

    @Test(arguments: Parser.all.map(\.name).filter(texts.contains))
    func `the time to read JSON is proportional to its size`(name: String) { compare(name) }

    @Test(arguments: Parser.all.map(\.name).filter(manifests.contains))
    func `the time to read a manifest is proportional to its size`(name: String) { compare(name) }

    @Test(arguments: Parser.all.map(\.name).filter(feeds.contains))
    func `the time to read a feed is proportional to its size`(name: String) { compare(name) }

    @Test(arguments: Parser.all.map(\.name).filter { !texts.union(manifests).union(feeds).contains($0) })
    func `the time of any other reader is proportional to the size of its input`(name: String) { compare(name) }

    /// Times below this are not compared: they consist of what every input takes, and of noise.
    private static let least = 0.05
    /// The sizes are reduced if the largest input would take longer: a build without optimization is slow, and the ratio of the
    /// times is the same.
    private static let most = 0.6

    private func compare(_ name: String) {
        for (parser, shape, limit) in Parser.cases where parser.name == name {
            let expected = 100 * seconds(parser, shape.make(limit / 100), times: 1)
            let size = expected > Self.most ? Int(Double(limit) * Self.most / expected) : limit
            var (small, large) = (seconds(parser, shape.make(size / 10), times: 1), 0.0)
            // A pause of the machine during one measurement must not fail the test: the best of several counts.
            for attempt in 1...4 {
                large = seconds(parser, shape.make(size), times: attempt)
                if large <= 13 * max(small, Self.least) { break }
                small = seconds(parser, shape.make(size / 10), times: 3)
            }
            #expect(
                large <= 13 * max(small, Self.least),
                "\(parser.name), \(shape.name): \(small) s for \(size / 10) bytes, \(large) s for \(size)")
        }
    }

    /// Returns the least processor time of several attempts.
    private func seconds(_ parser: Parser, _ bytes: [UInt8], times: Int) -> Double {
        (0..<times).map { _ in
            let start = Self.time
            // A refusal is the usual result.
            _ = try? parser.read(bytes)
            return Self.time - start
        }
        .min() ?? 0
    }

    private static var time: Double {
        var time = timespec()
        // This clock always exists on Linux.
        _ = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
