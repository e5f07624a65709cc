import CLinux
import MoultBasics
import MoultFiles
import MoultLibc
import Synchronization
package import Testing

@testable import MoultCommand

/// Runs command lines of `moult` in the process of the tests: the same code as the command from the command line on, but without
/// the start of a process, which takes longer than most commands, and without confined processes.
///
/// A test needs the trait `.processes` if it is about a process: its signals, its end, its confinement, its terminal.
package enum InProcess {
    /// `make test-all` sets MOULT_PROCESSES, so that each command is a process.
    @TaskLocal package static var isOff = getenv("MOULT_PROCESSES") != nil

    /// Whether a command may run in this process. The text of plans and of the status names the confinement.
    static func accepts(_ words: [String]) -> Bool {
        guard !isOff, let verb = words.first, !["watch", "follow", "steps", "examine"].contains(verb) else {
            return false
        }
        return !["plan", "status"].contains(verb) || words.contains("--json")
    }

    /// Runs one command in `directory`. Returns nil if this process cannot have threads with directories of their own, as in some
    /// containers.
    package static func run(_ words: [String], in directory: String, language: String = "C.UTF-8") throws -> Shell
        .Ended?
    {
        guard let outFile = tmpfile(), let errFile = tmpfile() else {
            throw Errno(moult_errno()).error("cannot make a file for the output")
        }
        defer { for file in [outFile, errFile] { fclose(file) } }
        let (out, err) = (fileno(outFile), fileno(errFile))
        let status = Mutex<Int32?>(nil)
        let before = [SIGINT, SIGTERM, SIGHUP].map { number in
            var action = sigaction()
            sigaction(number, nil, &action)
            return (number, action)
        }
        // The commands of an upload and consumers have the variables of the process.
        let path = "\(try BuiltMoult.directory()):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        let variables = ["HOME": directory, "PATH": path]
        let own = variables.map { name, _ in (name, getenv(name).map { String(cString: $0) }) }
        for (name, value) in variables { setenv(name, value, 1) }
        defer {
            for (number, action) in before { withUnsafePointer(to: action) { _ = sigaction(number, $0, nil) } }
            for (name, value) in own { if let value { setenv(name, value, 1) } else { unsetenv(name) } }
        }
        try withoutActuallyEscaping(
            { (set: (Int32) -> Void) in
                // The thread and those that it starts have a working directory of their own (CLONE_FS).
                guard unshare(0x200) == 0, chdir(directory) == 0 else { return }
                let environment = Environment(["LANG": language, "HOME": directory])
                let console = Console(environment: environment, out: out, err: err)
                set(Runner(commands: Command.all, environment: environment, console: console).run(words).rawValue)
            },
            do: { body in
                let work = UncheckedBody { body { number in status.withLock { $0 = number } } }
                try Threads.start { work.run() }.wait()
            })
        return try status.withLock { $0 }.map {
            try Shell.Ended(status: $0, output: text(of: out), errors: text(of: err))
        }
    }

    /// The thread ends before the function returns.
    private struct UncheckedBody: @unchecked Sendable {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    /// The header declares this function only for C.
    private static let unshare = unsafeBitCast(dlsym(nil, "unshare"), to: (@convention(c) (Int32) -> Int32).self)

    private static func text(of descriptor: Int32) throws -> String {
        String(decoding: try Files.read("/proc/self/fd/\(descriptor)", limit: 1 << 28) ?? [], as: UTF8.self)
    }
}

/// Starts the built command for each command of a test or suite.
package struct ProcessTrait: TestTrait, SuiteTrait, TestScoping {
    package let isRecursive = true
    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await InProcess.$isOff.withValue(true, operation: function)
    }
}

extension Trait where Self == ProcessTrait {
    /// Starts the built command for each command of the test: for exit statuses of signals, confinement and terminals.
    package static var processes: Self { Self() }
}
