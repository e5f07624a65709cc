import MoultLibc
import Testing

@testable import MoultCommand

/// Signals affect the whole process, so this suite has a single test, which restores the previous state.
@Suite struct InterruptionTests {
    @Test func `a signal is recorded, and a second signal changes nothing`() {
        let signals = [SIGINT, SIGTERM, SIGHUP]
        let before = signals.map { number in
            var action = sigaction()
            sigaction(number, nil, &action)
            return action
        }
        defer {
            for (number, action) in zip(signals, before) {
                var action = action
                sigaction(number, &action, nil)
            }
        }
        // Threads of tests block signals, but this thread must handle the signals that it raises at once.
        var (open, mask) = (sigset_t(), sigset_t())
        sigemptyset(&open)
        for number in signals { sigaddset(&open, number) }
        pthread_sigmask(SIG_UNBLOCK, &open, &mask)
        defer { pthread_sigmask(SIG_SETMASK, &mask, nil) }

        // An ignored signal stays ignored.
        signal(SIGHUP, SIG_IGN)
        Interruption.watch()
        raise(SIGHUP)
        #expect(!Interruption.isRequested)
        #expect(Interruption.name == nil)
        raise(SIGTERM)
        #expect(Interruption.isRequested)
        #expect(Interruption.name == "SIGTERM")
        raise(SIGINT)
        #expect(Interruption.name == "SIGTERM")
    }
}
