internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// Sends one message to a step's process and reads all replies.
/// Every protocol violation is thrown as an error that describes a `Misbehaviour`; only a result with exit status 0 is an
/// answer.
package struct StepConversation {
    let step: String
    let executable: StepExecutable
    let rights: StepRights
    let scratch: String
    /// The time limit in seconds. While preparing, it counts from the step's last message.
    var seconds: Int
    var countsSilence = false
    var onProgress: (_ what: String, _ done: Int, _ total: Int) throws -> Void = { _, _, _ in }
    var onLog: (String) -> Void = { _ in }
    /// Records an intent: what the step is about to do. The step gets the acknowledgement when this returns.
    var onIntent: (JSON) throws -> Void = { _ in throw Misbehaviour.strayReply("intent") }
    var onResult: () throws -> Void = {}
    /// Polled several times a second. An error cancels the step and is rethrown.
    var stop: () throws -> Void = {}
    var extra: [UInt8] = []

    static let longestLine = 1 << 20
    static let maxOutput = 16 << 20
    /// The `log` replies to one message that are shown, and the number of characters of each.
    static let (maxLogs, longestLog) = (20, 500)
    /// The time between cancelling, SIGTERM and SIGKILL.
    static let grace = Duration.seconds(2)

    /// Thrown by a callback to kill the step at once, which simulates a crash.
    struct Killed: Error {}

    struct Answer {
        let result: JSON
        let mountsAreReadOnly: Bool
    }

    package init(step: String, executable: StepExecutable, rights: StepRights, scratch: String, seconds: Int) {
        (self.step, self.executable, self.rights) = (step, executable, rights)
        (self.scratch, self.seconds) = (scratch, seconds)
    }

    func ask(_ message: String, _ members: JSON) throws -> Answer {
        let json = JSON.object([.init("message", .string(message)), .init("protocol", 1)] + (members.members ?? []))
        return try send(json.message, as: message)
    }

    func send(_ line: [UInt8], as message: String) throws -> Answer {
        let process = try executable.start(as: step, rights, scratch: scratch)
        process.send(line + extra)
        var state = State()
        do {
            try converse(process, &state)
            // Any other process that still has the pipes open is also killed.
            let ending = try process.endGroup()
            let rest = state.lines.rest()
            if !rest.isEmpty { throw Misbehaviour.strayOutput(String(decoding: rest, as: UTF8.self)) }
            return Answer(result: try answer(state, ending), mountsAreReadOnly: process.mountsAreReadOnly)
        } catch let error as Misbehaviour {
            // Standard error may explain the failure. If it cannot be read, only the existing error is reported.
            while case .errors(let bytes)? = try? process.next(until: .now) { state.add(bytes) }
            throw error.error(step, message, said: state.complaint)
        } catch let error as Refusal { throw error.error(step, message) } catch let error as Killed {
            process.kill()
            throw error
        } catch {
            cancel(process)
            throw error
        }
    }

    private struct State {
        var lines = MessageLines(longest: StepConversation.longestLine)
        var received = 0
        var logged = 0
        var said: [UInt8] = []
        var result: JSON?
        var refusal: Refusal?

        mutating func add(_ bytes: [UInt8]) { said = (said + bytes).suffix(4096) }

        /// The end of the step's standard error output.
        var complaint: String {
            String(decoding: said.suffix(400), as: UTF8.self).split(separator: "\n").suffix(3).joined(separator: " / ")
        }
    }

    private func converse(_ process: Subprocess, _ state: inout State) throws {
        var deadline = ContinuousClock.now + .seconds(seconds)
        while true {
            try stop()
            switch try process.next(until: min(deadline, .now + .milliseconds(100))) {
            case .output(let bytes):
                try take(bytes, process, &state)
                if countsSilence { deadline = ContinuousClock.now + .seconds(seconds) }
            case .errors(let bytes): state.add(bytes)
            case .ended: return
            case nil: break
            }
            // After its result, the step may wait for the end of its input.
            if state.result != nil || state.refusal != nil { process.closeInput() }
            if ContinuousClock.now >= deadline {
                let isSilent = countsSilence || state.received == 0
                cancel(process)
                throw isSilent ? Misbehaviour.silence(seconds: seconds) : .tooLong(seconds: seconds)
            }
        }
    }

    private func take(_ bytes: [UInt8], _ process: Subprocess, _ state: inout State) throws {
        state.received += bytes.count
        if state.received > Self.maxOutput { throw Misbehaviour.tooMuchOutput }
        state.lines.add(bytes)
        do {
            while let line = try state.lines.next() { try take(line: line, process, &state) }
        } catch is MessageLines.TooLong { throw Misbehaviour.lineTooLong }
    }

    private func take(line: [UInt8], _ process: Subprocess, _ state: inout State) throws {
        let text = String(decoding: line, as: UTF8.self)
        let json: JSON
        do { json = try JSON(parsing: line, source: "the step") } catch { throw Misbehaviour.strayOutput(text) }
        guard json.members != nil else { throw Misbehaviour.strayOutput(text) }
        if state.result != nil || state.refusal != nil {
            throw json["reply"]?.string == "result" ? Misbehaviour.twoResults : .moreAfterResult(text)
        }
        switch json["reply"]?.string {
        case "progress":
            try onProgress(
                json["what"]?.string ?? step, Int(clamping: json["done"]?.integer ?? 0),
                Int(clamping: json["total"]?.integer ?? 0))
        case "log":
            state.logged += 1
            if state.logged <= Self.maxLogs {
                onLog(String((json["text"]?.string ?? "").prefix(Self.longestLog)))
            } else if state.logged == Self.maxLogs + 1 {
                onLog("further messages of this step are not shown")
            }
        case "intent":
            try onIntent(json["intent"] ?? .null)
            let number = json["id"] ?? .null
            process.send(JSON.object([.init("message", "intentAck"), .init("id", number)]))
        case "result":
            try onResult()
            state.result = json
        case "error": state.refusal = try Refusal(json)
        default: throw Misbehaviour.strayReply(text)
        }
    }

    private func answer(_ state: State, _ ending: Subprocess.Ending) throws -> JSON {
        switch (state.result, ending) {
        case (_, .signalled(let signal)): throw Misbehaviour.signal(signal)
        case (let result?, .exited(0)): return result
        case (_?, .exited(let status)): throw Misbehaviour.resultThenStatus(status)
        case (nil, .exited(let status)):
            if let refusal = state.refusal { throw refusal }
            throw status == 0 ? Misbehaviour.exitWithoutResult : .status(status)
        case (_, .timedOut): throw Misbehaviour.tooLong(seconds: seconds)
        }
    }

    /// Asks the step to stop, then terminates its process group, then kills it.
    private func cancel(_ process: Subprocess) {
        process.send(JSON.object([.init("message", "cancel")]))
        for signal in [SIGTERM, SIGKILL] {
            let deadline = ContinuousClock.now + Self.grace
            // The step's output is ignored from here on, but the step must not block on a full pipe.
            while ContinuousClock.now < deadline {
                do { if case .ended? = try process.next(until: deadline) { return process.kill() } } catch {
                    // The original error is the one to report, so an error on the pipes only ends the wait.
                    break
                }
            }
            process.signal(signal)
        }
        process.kill()
    }
}

extension StepConversation {
    /// An `error` reply: the step cannot do what was requested.
    struct Refusal: Error {
        let kind: String
        let code: String?
        let message: String
        let hint: String?
        let path: String?
        let isRetryable: Bool

        init(_ json: JSON) throws {
            guard let message = json["message"]?.string else {
                throw Misbehaviour.wrongAnswer("its error has no \"message\"")
            }
            self.message = message
            kind = json["class"]?.string ?? "failed"
            code = json["code"]?.string ?? json["code"]?.integer.map { String($0) }
            hint = json["hint"]?.string
            path = json["path"]?.string
            isRetryable = json["retryable"]?.bool ?? false
        }

        func error(_ step: String, _ asked: String) -> MoultError {
            let outcome: MoultError.Outcome = isRetryable ? .busy : kind == "refused" ? .refused : .failed
            return MoultError(
                .stepRefused, outcome,
                what: "the step \(step) failed during \(asked): " + visible(message)
                    + (path.map { " (\(visible($0)))" } ?? ""), why: code.map { "the error code is \(visible($0))" },
                now: hint.map { Advice(visible($0)) })
        }
    }
}

/// The ways in which a step can violate the protocol. Each is a failure, never an answer.
enum Misbehaviour: Error {
    case strayOutput(String)
    case strayReply(String)
    case lineTooLong
    case tooMuchOutput
    case silence(seconds: Int)
    case tooLong(seconds: Int)
    case exitWithoutResult
    case resultThenStatus(Int32)
    case twoResults
    case moreAfterResult(String)
    case signal(Int32)
    case status(Int32)
    case wrongAnswer(String)
    case outsideThePlan(String)

    var text: String {
        switch self {
        case .strayOutput(let line): "it printed something that is not a JSON object: \(Self.quoted(line))"
        case .strayReply(let line): "it printed a reply that the protocol does not define: \(Self.quoted(line))"
        case .lineTooLong: "it printed a line of more than 1 MiB"
        case .tooMuchOutput: "it printed more than 16 MiB"
        case .silence(let seconds): "it sent nothing for \(seconds) s, and was killed"
        case .tooLong(let seconds): "it took longer than \(seconds) s, and was killed"
        case .exitWithoutResult: "it ended with status 0 and without a result"
        case .resultThenStatus(let status): "it returned a result, but ended with status \(status)"
        case .twoResults: "it returned two results"
        case .moreAfterResult(let line): "it printed more after its result: \(Self.quoted(line))"
        case .signal(let signal): "it was killed by signal \(signal)"
        case .status(let status): "it ended with status \(status) and without a result"
        case .wrongAnswer(let why): "its result is invalid: \(why)"
        case .outsideThePlan(let what): "it exceeded its plan: \(what)"
        }
    }

    private static func quoted(_ line: String) -> String { "\"\(visible(String(line.prefix(120))))\"" }

    func error(_ step: String, _ message: String, said: String = "") -> MoultError {
        MoultError(
            .step, what: "the step \(step) failed during \(message)",
            why: said.isEmpty ? text : "\(text); on standard error: \(said)",
            now: "Report this to the author of the step. To test the step: \(moult: "steps", "test", "EXECUTABLE")")
    }
}
