import MoultBasics
import Testing

@testable import MoultCommand

@Suite struct TimesTests {
    @Test(
        arguments: [
            (0, "0 ms"), (0.0124, "12 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"), (4.24, "4.2 s"), (9.96, "10 s"),
            (59.4, "59 s"), (59.6, "1 min"), (72, "1 min 12 s"), (3600, "1 h"), (7500, "2 h 5 min"), (86_400, "1 d"),
            (90_000, "1 d 1 h"),
        ] as [(Double, String)])
    func `durations are described in words`(_ seconds: Double, text: String) {
        #expect(durationText(seconds: seconds) == text)
    }

    @Test(arguments: [
        (0, "just now"), (4, "just now"), (-4, "just now"), (5, "5 seconds ago"), (60, "1 minute ago"),
        (200, "3 minutes ago"), (3600, "1 hour ago"), (90_000, "1 day ago"), (59 * 86_400, "59 days ago"),
        (61 * 86_400, "2 months ago"), (800 * 86_400, "2 years ago"), (-7200, "in 2 hours"), (-5 * 86_400, "in 5 days"),
    ])
    func `relative times are described in words`(_ seconds: Int, text: String) {
        let now = Timestamp(seconds: 2_000_000_000)
        #expect(Timestamp(seconds: now.seconds - seconds).relative(to: now) == text)
    }

    @Test func `times in a pipe have the same format as in JSON`() {
        let time = Timestamp(seconds: 1_795_168_800)
        #expect(time.text(for: Terminal()) == time.description)
    }

    @Test func `times on a terminal are local`() {
        let now = Timestamp(seconds: 1_795_168_800)
        let text = now.text(for: Terminal(width: 80), now: now)
        #expect(text == "\(now.local) (just now)")
        #expect(now.local.count == "2026-11-20 11:00:00".count)
    }
}
