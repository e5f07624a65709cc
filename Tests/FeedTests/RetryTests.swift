import Glibc
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult apply --retry SECONDS`: what ends with 75 is tried again, and 75 in the end is a failure to systemd.
@Suite struct RetryTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.release("1.0.0", sequence: 1)
        try bench.must("moult init -q --product org.example.test")
    }

    /// Another process that holds the lock of the store, as a second update does.
    private func updater() throws -> Background {
        let program = try Background([
            "flock", bench.path("store/.moult/lock"), "sh", "-c", "touch \(bench.path("held")); exec sleep 600",
        ])
        try program.wait { try Files.facts(bench.path("held")) != nil }
        return program
    }

    @Test func `without --retry it ends with 75 at once`() throws {
        let updater = try updater()
        #expect(try bench.run("moult apply -q rel/test-1.0.0.json").status == 75)
        updater.stop()
    }

    @Test func `it ends with 75 after the time, and says why it waited`() throws {
        let updater = try updater()
        let ended = try bench.run("moult apply -q --retry 1 rel/test-1.0.0.json")
        #expect(ended.status == 75)
        let lines = ended.errors.split(separator: "\n").map(String.init)
        #expect(
            lines.first?.hasPrefix("moult: warning: ") == true && lines.first?.hasSuffix("trying again in 1 s") == true)
        #expect(lines.dropFirst().first?.hasPrefix("moult: error: ") == true)
        updater.stop()
    }

    @Test func `it goes on as soon as it can`() throws {
        let updater = try updater()
        let waiting = try Background([
            try BuiltMoult.path(), "apply", "-q", "--retry", "2", "--store", bench.path("store"),
            bench.path("rel/test-1.0.0.json"),
        ])
        // It has the release open no more, so the first attempt is over.
        try waiting.wait { try Shell.run(["grep", "-q", "trying again", "/proc/\(waiting.pid)/fd/2"]).status == 0 }
        updater.stop()
        _ = try waiting.end()
        #expect(try bench.installed() == "1.0.0")
    }

    @Test func `a refusal is not tried again`() throws {
        try bench.must("moult hold -q")
        let start = ContinuousClock.now
        #expect(try bench.run("moult apply -q --retry 3600 rel/test-1.0.0.json").status == 3)
        #expect(ContinuousClock.now - start < .seconds(60))
    }

    @Test func `SIGTERM ends the pause`() throws {
        let updater = try updater()
        let waiting = try Background([
            try BuiltMoult.path(), "apply", "-q", "--retry", "3600", "--store", bench.path("store"),
            bench.path("rel/test-1.0.0.json"),
        ])
        try waiting.wait { try Shell.run(["grep", "-q", "trying again", "/proc/\(waiting.pid)/fd/2"]).status == 0 }
        waiting.signal(SIGTERM)
        let error = try #require(throws: MoultError.self) { try waiting.end() }
        #expect(error.why?.contains("interrupted before anything was changed") == true)
        updater.stop()
    }
}
