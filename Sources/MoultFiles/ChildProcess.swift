internal import CLinux
internal import Glibc
internal import MoultBasics

/// Another program, run to its end without a shell.
///
/// It gets the standard descriptors only, and inherits no other descriptor.
package enum ChildProcess {
    package enum Ending: Equatable, Sendable {
        case exited(Int32)
        case signalled(Int32)
        /// It was ended, with all that it had started, because its time was over.
        case timedOut
    }

    package struct Result: Sendable {
        /// The number that it had.
        package let pid: Int32
        package let ending: Ending
        package let output: [UInt8]
        package let errors: [UInt8]

        package var succeeded: Bool { ending == .exited(0) }
        /// The standard output without the line feed at its end.
        package var text: String { String(decoding: output, as: UTF8.self).trimmed }
        /// What it said on standard error; else how it ended.
        package var complaint: String {
            let said = String(decoding: errors, as: UTF8.self).trimmed
            if !said.isEmpty, ending != .timedOut { return said }
            return switch ending {
            case .exited(let status): "it ended with status \(status)"
            case .signalled(let signal): "signal \(signal) ended it"
            case .timedOut: "it did not end in time"
            }
        }
    }

    /// Runs the program, found in PATH, and waits for it. `environment` is added to this process's own.
    ///
    /// A status other than 0 is no error here. A program that writes more than `limit` bytes is killed, and that is one.
    /// With `within` it has a process group of its own, and no longer than that. What it leaves running in the background
    /// is not waited for. `stop` is asked when a signal comes, and may end the waiting and the program. What `confinement`
    /// forbids, it may not do from its first instruction on.
    package static func run(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:], input: [UInt8] = [],
        within time: Duration? = nil, limit: Int = 1 << 20, confinement: Confinement? = nil,
        stop: () throws -> Void = {}
    ) throws -> Result {
        var output = try Pipe()
        var errors = try Pipe()
        let deadline = time.map { ContinuousClock.now + $0 }
        let pid = try spawn(
            arguments, directory, environment, input, isGroup: time != nil, output: output.input, errors: errors.input,
            confinement: confinement)
        output.closeInput()
        errors.closeInput()
        var running = Running(
            pid: pid, name: arguments.first ?? "", isGroup: time != nil, output: output.output, errors: errors.output,
            limit: limit)
        do {
            let isOver = try running.listen(until: deadline, stop: stop)
            let ending = isOver ? try running.wait() : try running.end()
            return Result(pid: pid, ending: ending, output: running.said[0], errors: running.said[1])
        } catch {
            running.kill()
            throw error
        }
    }

    /// The environment of this process.
    package static var ownEnvironment: [String: String] {
        var settings: [String: String] = [:]
        var next = Glibc.environ
        while let setting = next.pointee {
            let text = String(cString: setting)
            if let equals = text.firstIndex(of: "=") {
                settings[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            next += 1
        }
        return settings
    }
}
