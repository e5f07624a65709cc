import MoultCommand
import MoultLibc
import Testing

/// Signals belong to the whole process: one test, that puts back what it found.
@Suite struct InterruptionTests {
    @Test func `a signal is noted and a second one changes nothing`() {
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
        // The threads that run tests block signals; what is raised here must arrive here, and at once.
        var (open, mask) = (sigset_t(), sigset_t())
        sigemptyset(&open)
        for number in signals { sigaddset(&open, number) }
        pthread_sigmask(SIG_UNBLOCK, &open, &mask)
        defer { pthread_sigmask(SIG_SETMASK, &mask, nil) }

        // One that is ignored stays ignored.
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
