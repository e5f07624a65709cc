internal import CLinux
internal import MoultBasics
internal import MoultLibc

extension Subprocess {
    package struct Result: Sendable {
        /// The process ID of the program, or of its supervisor.
        package let pid: Int32
        package let ending: Ending
        package let output: [UInt8]
        package let errors: [UInt8]

        package var succeeded: Bool { ending == .exited(0) }
        /// Standard output without spaces and line feeds at either end.
        package var text: String { String(decoding: output, as: UTF8.self).trimmed }
        /// The program's standard error; if that is empty or the program exceeded its time limit, how the program ended.
        package var complaint: String {
            let said = String(decoding: errors, as: UTF8.self).trimmed
            if !said.isEmpty, ending != .timedOut { return said }
            return switch ending {
            case .exited(let status): "it ended with status \(status)"
            case .signalled(let signal): "it was killed by signal \(signal)"
            case .timedOut: "it did not end in time"
            }
        }
    }

    /// Whether a limit applies to the size of files written by programs that this process starts.
    package static var hasFileSizeLimit: Bool { moult_has_file_size_limit() != 0 }

    /// The time between SIGTERM and SIGKILL.
    private static let grace = Duration.seconds(2)

    /// Runs a command line of the user in a shell, unless another user can change the program that the line begins with.
    package static func shell(_ line: String, environment: [String: String]) throws -> Result {
        try PathCustody.check(program: line.split(whereSeparator: \.isWhitespace).map { String($0) })
        return try run(["sh", "-c", line], environment: environment, limit: 1 << 26, isSupervised: true)
    }

    /// Runs a program, found through PATH, until it ends. `environment` is added to the environment of this process;
    /// `wholeEnvironment` replaces both.
    ///
    /// An exit status other than 0 is not an error here. If the program writes more than `limit` bytes, it is killed and this
    /// function throws. With `within`, the program gets its own process group and is stopped after that time. This function
    /// does not wait for background processes that the program leaves behind. It calls `stop` when this process receives a
    /// signal; if `stop` throws, the program is killed. A program that another user can change is not run.
    package static func run(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:], input: [UInt8] = [],
        wholeEnvironment: [String: String]? = nil, within time: Duration? = nil, limit: Int = 1 << 20,
        confinement: Confinement? = nil, isSupervised: Bool = false, stop: () throws -> Void = {}
    ) throws -> Result {
        var command = Command(arguments, environment: environment, in: directory)
        command.wholeEnvironment = wholeEnvironment
        (command.confinement, command.isGroup) = (confinement, time != nil || isSupervised)
        command.isSupervised = isSupervised
        try PathCustody.check(
            program: arguments, path: wholeEnvironment?["PATH"] ?? environment["PATH"], in: directory)
        let child = try Subprocess(command, input: input.isEmpty ? .nothing : .bytes(input))
        let deadline = time.map { ContinuousClock.now + $0 }
        var said: (output: [UInt8], errors: [UInt8]) = ([], [])
        func listen(until deadline: ContinuousClock.Instant?, stop: () throws -> Void) throws -> Bool {
            while true {
                switch try child.next(until: deadline) {
                case .output(let bytes): said.output += bytes
                case .errors(let bytes): said.errors += bytes
                case .ended: return true
                case nil:
                    try stop()
                    if let deadline, ContinuousClock.now >= deadline { return false }
                }
                if max(said.output.count, said.errors.count) > limit {
                    throw MoultError(
                        .system, what: "stopped \(child.name)", why: "it wrote more than \(ByteCount(limit))")
                }
            }
        }
        let ending: Ending
        if try listen(until: deadline, stop: stop) {
            ending = try child.wait()
        } else {
            // SIGTERM lets the program and all its children clean up first. `stop` is not called again.
            child.signal(SIGTERM)
            _ = try listen(until: .now + grace, stop: {})
            child.kill()
            ending = .timedOut
        }
        return Result(pid: child.pid, ending: ending, output: said.output, errors: said.errors)
    }

    /// Runs a program with this process's output and terminal, and waits until it ends.
    ///
    /// `stopSignal` is polled ten times a second. If it returns a signal, the program receives it, and is killed if it does not
    /// end within two seconds. The program is also killed when this process ends.
    package static func runInPlace(
        _ arguments: [String], environment: [String: String] = [:], stopSignal: () -> Int32? = { nil }
    ) throws -> Ending {
        var command = Command(arguments, environment: environment)
        command.endsWithParent = true
        let child = try Subprocess(command, output: .inherited)
        var asked: ContinuousClock.Instant?
        while true {
            if case .ended = try child.next(until: .now + .milliseconds(100)) { return try child.wait() }
            if let asked {
                if ContinuousClock.now > asked + grace { child.signal(SIGKILL) }
            } else if let signal = stopSignal() {
                asked = .now
                child.signal(signal)
            }
        }
    }

    // MARK: streaming output

    /// The maximum number of bytes of standard error to keep.
    private static let complaintLimit = 1 << 16

    /// Returns the next block of the program's standard output; nil at the end. Throws if nothing arrives for `patience`
    /// seconds. Calls `stop` several times a second.
    package func read(patience seconds: Int, stop: () throws -> Void) throws -> [UInt8]? {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while true {
            try stop()
            switch try next(until: .now + .milliseconds(100)) {
            case .output(let bytes): return bytes
            case .errors(let bytes): complaint = (complaint + bytes).suffix(Self.complaintLimit)
            case .ended: return nil
            case nil:
                if ContinuousClock.now > deadline {
                    throw MoultError(.system, what: "stopped \(name)", why: "it sent nothing for \(seconds) seconds")
                }
            }
        }
    }

    /// Waits for the program to end, and returns its exit status and standard error.
    package func finish() throws -> Result {
        var isOver = false
        while !isOver {
            switch try next(until: nil) {
            case .errors(let bytes): complaint = (complaint + bytes).suffix(Self.complaintLimit)
            case .ended: isOver = true
            case .output, nil: break
            }
        }
        return Result(pid: pid, ending: try wait(), output: [], errors: complaint)
    }
}
