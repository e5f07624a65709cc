import MoultBasics
import MoultLibc
import TestSupport
import Testing

/// A reader of untrusted bytes takes at most 13 times as long for its largest input as for a tenth of that. A quadratic one takes a
/// hundred times as long: an attacker could keep a store, or a publisher, busy with a small file.
@Suite(.tags(.thorough, .slow), .serialized) struct LinearTimeTests {
    /// Times below this are not compared: they consist of what every input takes, and of noise.
    private static let least = 0.004

    @Test(arguments: Parser.all.map(\.name))
    func `the time of a reader is proportional to the size of its input`(name: String) throws {
        for (parser, shape) in Parser.cases where parser.name == name {
            var (small, large) = (0.0, 0.0)
            // A pause of the machine during one measurement must not fail the test: the best of several counts.
            for attempt in 1...4 {
                small = seconds(parser, shape.make(parser.limit / 10), times: 3)
                large = seconds(parser, shape.make(parser.limit), times: attempt)
                if large <= 13 * max(small, Self.least) { break }
            }
            #expect(
                large <= 13 * max(small, Self.least),
                "\(parser.name), \(shape.name): \(small) s for \(parser.limit / 10) bytes, \(large) s for \(parser.limit)"
            )
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
