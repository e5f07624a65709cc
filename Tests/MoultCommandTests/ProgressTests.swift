import Synchronization
import Testing

@testable import MoultCommand

@Suite struct ProgressTests {
    /// A clock that only advances on request.
    final class Clock: Sendable {
        private let time = Mutex(100.0)
        var now: Double { time.withLock { $0 } }
        func advance(_ seconds: Double) { time.withLock { $0 += seconds } }
    }

    private let environment = ["TERM": "xterm", "NO_COLOR": "1"]
    private let mebibyte = 1 << 20

    private func bar(_ terminal: PseudoTerminal, _ more: [String: String] = [:], quiet: Bool = false) -> (
        bar: ProgressBar, clock: Clock, console: Console
    ) {
        let clock = Clock()
        let variables = Environment(environment.merging(more) { $1 })
        let console = Console(environment: variables, out: terminal.descriptor, err: terminal.descriptor)
        return (ProgressBar(console: console, quiet: quiet, clock: { clock.now }), clock, console)
    }

    @Test func `short operations show no progress`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, _) = bar(terminal)
        for step in 0...4 {
            bar.show(Progress("copy food", done: step, of: 4))
            clock.advance(0.1)
        }
        bar.end()
        #expect(terminal.read() == "")
    }

    @Test func `long operations show phase, amount, rate and remaining time`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, _) = bar(terminal)
        bar.show(Progress("copy food", done: 0, of: 198 * mebibyte))
        clock.advance(1)
        bar.show(Progress("copy food", done: 99 * mebibyte, of: 198 * mebibyte))
        // The text takes 60 columns, the gap takes 2, and the last 4 of the 80 columns stay free, so 14 are left for
        // the bar.
        #expect(
            terminal.read()
                == "\rcopy food  #######.......   50 %  99.0 MiB of 198 MiB  99.0 MiB/s  0:01 left\u{1B}[K")
        bar.end()
        #expect(terminal.read() == "\r\u{1B}[K")
    }

    @Test func `progress is drawn at most ten times a second`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, _) = bar(terminal)
        // Two seconds with an event every millisecond.
        for step in 0..<2000 {
            bar.show(Progress("copy food", done: step, of: 2000))
            clock.advance(0.001)
        }
        let drawn = terminal.read().split(separator: "\r").count
        #expect((13...16).contains(drawn), "\(drawn) times")
    }

    @Test func `a diagnostic clears the progress line first`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, console) = bar(terminal)
        bar.show(Progress("check", done: 0))
        clock.advance(1)
        bar.show(Progress("check", done: 1))
        _ = terminal.read()
        console.diagnose("moult: something\n")
        #expect(terminal.read() == "\r\u{1B}[Kmoult: something\r\n")
    }

    @Test func `narrow terminals omit the least important parts`() throws {
        for (columns, line) in [
            (60, "copy food   50 %  99.0 MiB of 198 MiB  0:01 left"),
            (40, "copy food   50 %  0:01 left"), (20, "copy food   50 %"),
        ] {
            let terminal = try PseudoTerminal(columns: columns)
            let (bar, clock, _) = bar(terminal)
            bar.show(Progress("copy food", done: 0, of: 198 * mebibyte))
            clock.advance(1)
            bar.show(Progress("copy food", done: 99 * mebibyte, of: 198 * mebibyte))
            #expect(terminal.read() == "\r\(line)\u{1B}[K")
        }
    }

    @Test func `progress on a UTF-8 terminal has a bar of Unicode characters`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, _) = bar(terminal, ["LANG": "C.UTF-8"])
        bar.show(Progress("check food", done: 0, of: 10, unit: .items))
        clock.advance(0.6)
        bar.show(Progress("check food", done: 5, of: 10, unit: .items))
        let half = String(repeating: "━", count: 18)
        let rest = String(repeating: "─", count: 19)
        #expect(terminal.read() == "\rcheck food  \(half)\(rest)   50 %  5 of 10  0:01 left\u{1B}[K")
    }

    @Test func `progress adapts to the size of the window`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, _) = bar(terminal)
        bar.show(Progress("copy food", done: 0, of: 4, unit: .items))
        try terminal.resize(columns: 24)
        clock.advance(1)
        bar.show(Progress("copy food", done: 2, of: 4, unit: .items))
        #expect(terminal.read() == "\rcopy food   50 %\u{1B}[K")
    }

    @Test func `progress without a known size shows the duration`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, _) = bar(terminal)
        bar.show(Progress("check food", done: 0))
        clock.advance(75)
        bar.show(Progress("check food", done: 0))
        #expect(terminal.read() == "\rcheck food  1:15\u{1B}[K")
    }

    @Test func `the progress line is redrawn even while nothing advances`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let console = Console(
            environment: Environment(environment), out: terminal.descriptor, err: terminal.descriptor)
        let bar = ProgressBar(console: console, ticks: true)
        bar.show(Progress("check food", done: 0))
        var drawn = ""
        while drawn.ranges(of: "check food").count < 3 { drawn += terminal.read() }
        bar.end()
        console.endProgress()
        _ = terminal.read()
        bar.show(Progress("copy food", done: 0))
        bar.end()
        #expect(terminal.read() == "")
    }

    @Test func `the progress line shows that a command is stopping`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let clock = Clock()
        let console = Console(
            environment: Environment(environment), out: terminal.descriptor, err: terminal.descriptor)
        let bar = ProgressBar(console: console, isStopping: { true }, clock: { clock.now })
        bar.show(Progress("check food", done: 0))
        clock.advance(0.9)
        bar.show(Progress("check food", done: 0))
        #expect(terminal.read() == "\rstopping: check food\u{1B}[K")
    }

    @Test(arguments: [["TERM": "dumb"], ["TERM": ""]])
    func `a dumb terminal shows no progress`(_ variables: [String: String]) throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, _) = bar(terminal, variables)
        bar.show(Progress("copy food", done: 0, of: 4))
        clock.advance(1)
        bar.show(Progress("copy food", done: 1, of: 4))
        bar.end()
        #expect(terminal.read() == "")
    }

    @Test func `quiet mode shows no progress`() throws {
        let terminal = try PseudoTerminal(columns: 80)
        let (bar, clock, _) = bar(terminal, quiet: true)
        bar.show(Progress("copy food", done: 0, of: 4))
        clock.advance(1)
        bar.show(Progress("copy food", done: 1, of: 4))
        #expect(terminal.read() == "")
    }
}
