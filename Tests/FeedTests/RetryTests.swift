import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// `moult apply --retry SECONDS` tries again instead of exiting with 75, and systemd treats a final 75 as a failure.
@Suite struct RetryTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult init -q --product org.example.test")
    }

    /// Runs the command in the background, with signals unblocked, and waits until the command tries again.
    private func waiting(_ seconds: Int) throws -> Background {
        let command = """
            import os, signal, sys
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execvp(sys.argv[1], sys.argv[1:])
            """
        let program = try Background([
            "python3", "-c", command, try BuiltMoult.path(), "apply", "-q", "--retry", "\(seconds)", "--store",
            bench.path("store"), bench.path("rel/test-1.0.0.json"),
        ])
        try program.wait { try Shell.run(["grep", "-q", "trying again", "/proc/\(program.pid)/fd/2"]).status == 0 }
        return program
    }

    @Test func `without --retry, apply exits with 75 at once`() throws {
        let updater = try bench.updater()
        #expect(try bench.run("moult apply -q rel/test-1.0.0.json").status == 75)
        updater.stop()
    }

    @Test func `with --retry, apply exits with 75 after the specified time and says why it waited`() throws {
        let updater = try bench.updater()
        let ended = try bench.run("moult apply -q --retry 1 rel/test-1.0.0.json")
        #expect(ended.status == 75)
        let lines = ended.errors.split(separator: "\n").map(String.init)
        #expect(
            lines.first?.hasPrefix("moult: warning: ") == true && lines.first?.hasSuffix("trying again in 1 s") == true)
        #expect(lines.dropFirst().first?.hasPrefix("moult: error: ") == true)
        updater.stop()
    }

    @Test func `with --retry, apply continues as soon as the store is free`() throws {
        let updater = try bench.updater()
        let waiting = try waiting(2)
        updater.stop()
        _ = try waiting.end()
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a refusal is not retried`() throws {
        try bench.must("moult hold -q --reason test")
        let start = ContinuousClock.now
        #expect(try bench.run("moult apply -q --retry 3600 rel/test-1.0.0.json").status == 3)
        #expect(ContinuousClock.now - start < .seconds(60))
    }

    @Test func `SIGTERM ends the pause of --retry`() throws {
        let updater = try bench.updater()
        let waiting = try waiting(3600)
        waiting.signal(SIGTERM)
        let error = try #require(throws: MoultError.self) { _ = try waiting.end() }
        #expect(error.why?.contains("interrupted before anything was changed") == true)
        updater.stop()
    }
}
