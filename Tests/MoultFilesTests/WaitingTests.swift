import MoultBasics
import MoultLibc
import TestSupport
import Testing

@testable import MoultFiles

/// Functions that wait: for changes of a directory, and for other processes.
@Suite struct WaitingTests {
    private let scratch: Scratch
    private let directory: String

    init() throws {
        scratch = try Scratch()
        directory = try scratch.directory("watched")
    }

    // MARK: DirectoryWatch

    @Test(arguments: ["created", "moved into it", "moved out of it", "renamed", "removed", "a directory"])
    func `a watch reports a change that was made before the wait`(_ change: String) throws {
        let (inside, outside) = (try scratch.write("watched/old", "x"), try scratch.write("other", "x"))
        let watch = try DirectoryWatch(directory)
        switch change {
        case "created": try scratch.write("watched/new", "x")
        case "moved into it": try Files.rename(outside, to: "\(directory)/new")
        case "moved out of it": try Files.rename(inside, to: scratch.path("new"))
        case "renamed": try Files.rename(inside, to: "\(directory)/new")
        case "removed": try Files.remove(inside)
        default: try scratch.directory("watched/new")
        }
        #expect(try watch.wait())
        // All events of the change were reported at once.
        watch.cancel()
        #expect(try !watch.wait())
    }

    @Test func `a waiting thread is woken by a change, and then by a cancellation`() throws {
        let watch = try DirectoryWatch(directory)
        let monitor = Monitor()
        let answers = Answers()
        let thread = try Threads.start {
            for _ in 1...2 {
                let answer = Result { try watch.wait() }
                monitor.locked { answers.all.append(try? answer.get()) }
            }
        }
        try scratch.write("watched/new", "x")
        monitor.locked { monitor.wait { answers.all.isEmpty } }
        watch.cancel()
        thread.wait()
        #expect(answers.all == [true, false])
    }

    @Test func `the removal of the directory is a change`() throws {
        let watch = try DirectoryWatch(directory)
        try Files.removeTree(directory)
        #expect(try watch.wait())
    }

    @Test func `a missing directory and a file cannot be watched, and no descriptor is left open`() throws {
        func watches() throws -> Int {
            try Files.list("/proc/self/fd").count {
                // A descriptor that another thread has closed in the meantime does not count.
                (try? Files.target(ofLink: "/proc/self/fd/\($0)")) == "anon_inode:inotify"
            }
        }
        let before = try watches()
        let file = try scratch.write("file", "x")
        // Other tests may use watches at the same time, but not so many.
        for _ in 1...100 {
            for path in [scratch.path("none"), file] {
                let error = #expect(throws: MoultError.self) { try DirectoryWatch(path) }
                #expect(error?.what == "cannot watch \(path)")
            }
        }
        #expect(try watches() < before + 100)
    }

    // MARK: Backoff

    @Test func `pauses get longer, and end after the deadline`() {
        let begun = ContinuousClock.now
        var backoff = Backoff(.milliseconds(30))
        var pauses = 0
        while backoff.pause() { pauses += 1 }
        #expect(ContinuousClock.now - begun >= .milliseconds(30))
        // The first five pauses take at least 31 ms, and on a busy machine, they take longer.
        #expect((1...5).contains(pauses), "\(pauses)")
        let pausesAgain = backoff.pause()
        #expect(!pausesAgain)
    }

    @Test(arguments: [Duration.zero, .seconds(-1)]) func `without time left, nothing pauses`(_ limit: Duration) {
        var backoff = Backoff(limit)
        let pauses = backoff.pause()
        #expect(!pauses)
    }
}

/// Answers of a thread. Unchecked: all threads hold the same monitor while they use it.
private final class Answers: @unchecked Sendable {
    var all: [Bool?] = []
}
