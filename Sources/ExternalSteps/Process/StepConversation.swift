internal import CLinux
internal import Glibc
internal import MoultBasics
internal import MoultFiles

/// One message to a process of a step, and all that it answers.
///
/// Whatever it does wrong is a `Misbehaviour` with what was seen; only a result with status 0 is an answer.
package struct StepConversation {
    let step: String
    let executable: StepExecutable
    let rights: StepRights
    /// Its own directory, in which it runs.
    let scratch: String
    /// Seconds that it has in all; for one that prepares: since it last said something.
    var seconds: Int
    var countsSilence = false
    var onProgress: (_ what: String, _ done: Int, _ total: Int) throws -> Void = { _, _, _ in }
    var onLog: (String) -> Void = { _ in }
    /// Keeps what the step is about to do; it is answered when this returns.
    var onIntent: (JSON) throws -> Void = { _ in
        throw Misbehaving(.strayReply("intent"))
    }
    /// Told when it says that it is done.
    var onResult: () throws -> Void = {}
    /// Asked several times in a second; an error cancels the step and is thrown on.
    var stop: () throws -> Void = {}
    /// What is sent besides, right after the message.
    var extra: [UInt8] = []

    static let longestLine = 1 << 20
    static let mostOutput = 16 << 20
    /// Between cancelling, asking to end, and ending.
    static let grace = Duration.seconds(2)

    /// What a step did wrong, before it is known which step it was.
    struct Misbehaving: Error {
        let what: Misbehaviour
        init(_ what: Misbehaviour) { self.what = what }
    }

    /// That it is to be killed right now, as a crash would.
    struct Killed: Error {}

    /// What came of it.
    struct Answer {
        let result: JSON
        let mountsAreReadOnly: Bool
    }

    package init(step: String, executable: StepExecutable, rights: StepRights, scratch: String, seconds: Int) {
        (self.step, self.executable, self.rights) = (step, executable, rights)
        (self.scratch, self.seconds) = (scratch, seconds)
    }

    /// Sends a message and gives the result.
    func ask(_ message: String, _ members: JSON) throws -> Answer {
        let json = JSON.object([.init("message", .string(message)), .init("protocol", 1)] + (members.members ?? []))
        return try send(Array((json.line + "\n").utf8), as: message)
    }

    func send(_ line: [UInt8], as message: String) throws -> Answer {
        let process = try StepProcess(executable, name: step, rights: rights, scratch: scratch)
        var state = State(pending: line + extra)
        do {
            try converse(process, &state)
            let ending = try process.collect()
            try drain(process, &state)
            return Answer(result: try answer(state, ending), mountsAreReadOnly: process.mountsAreReadOnly)
        } catch let error as Misbehaving {
            // What it had said on standard error by then may tell why.
            try? drainErrors(process, &state)
            throw error.what.error(step, message, said: state.complaint)
        } catch let error as Refusal {
            throw error.error(step, message)
        } catch let error as Killed {
            _ = try process.collect()
            throw error
        } catch {
            cancel(process, &state)
            throw error
        }
    }

    private struct State {
        var pending: [UInt8]
        var line: [UInt8] = []
        var received = 0
        var said: [UInt8] = []
        var result: JSON?
        var refusal: Refusal?

        /// The last of what it wrote on standard error.
        var complaint: String {
            String(decoding: said.suffix(400), as: UTF8.self).split(separator: "\n").suffix(3).joined(separator: " / ")
        }
    }

    private func converse(_ process: StepProcess, _ state: inout State) throws {
        var deadline = ContinuousClock.now + .seconds(seconds)
        let end = moult_pidfd_open(process.pid)
        guard end >= 0 else { throw Errno(moult_errno()).error("cannot wait for the step \(step)") }
        defer { Glibc.close(end) }
        var outputs = [process.output, process.errors]
        while true {
            try stop()
            var polls = [end, outputs[0], outputs[1]].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            polls.append(pollfd(fd: state.pending.isEmpty ? -1 : process.input, events: Int16(POLLOUT), revents: 0))
            let count = poll(&polls, 4, 100)
            if count < 0 {
                if moult_errno() == EINTR { continue }
                throw Errno(moult_errno()).error("cannot wait for the step \(step)")
            }
            if polls[3].revents != 0 { write(process, &state) }
            for index in 0..<2 where polls[1 + index].revents != 0 {
                if try take(index, process, &state) { outputs[index] = -1 }
                if index == 0, countsSilence { deadline = ContinuousClock.now + .seconds(seconds) }
            }
            if polls[0].revents != 0 { return }
            // A step that waits for the end of its input after its result shall find it.
            if state.result != nil || state.refusal != nil { process.closeInput() }
            if ContinuousClock.now >= deadline {
                let isSilent = countsSilence || state.received == 0
                cancel(process, &state)
                throw Misbehaving(isSilent ? .silence(seconds: seconds) : .tooLong(seconds: seconds))
            }
        }
    }

    private func write(_ process: StepProcess, _ state: inout State) {
        let count = state.pending.withUnsafeBytes { moult_write_quietly(process.input, $0.baseAddress, $0.count) }
        if count > 0 {
            state.pending.removeFirst(count)
        } else if moult_errno() != EAGAIN, moult_errno() != EINTR {
            // It reads no more; what it says, or its end, tells the rest.
            state.pending = []
            process.closeInput()
        }
    }

    /// Takes in what is there; says whether it was the end.
    private func take(_ index: Int, _ process: StepProcess, _ state: inout State) throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = read(index == 0 ? process.output : process.errors, &buffer, buffer.count)
        if count < 0 {
            if moult_errno() == EAGAIN || moult_errno() == EINTR { return false }
            throw Errno(moult_errno()).error("cannot read what the step \(step) says")
        }
        if count == 0 { return true }
        guard index == 0 else {
            state.said = (state.said + buffer[..<count]).suffix(4096)
            return false
        }
        state.received += count
        if state.received > Self.mostOutput { throw Misbehaving(.tooMuchOutput) }
        var rest = buffer[..<count]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            state.line += rest[..<end]
            rest = rest[(end + 1)...]
            if state.line.count > Self.longestLine { throw Misbehaving(.lineTooLong) }
            let line = state.line
            state.line = []
            try take(line, process, &state)
        }
        state.line += rest
        if state.line.count > Self.longestLine { throw Misbehaving(.lineTooLong) }
        return false
    }

    private func take(_ line: [UInt8], _ process: StepProcess, _ state: inout State) throws {
        let text = String(decoding: line, as: UTF8.self)
        let json: JSON
        do { json = try JSON(parsing: line, source: "the step") } catch { throw Misbehaving(.strayOutput(text)) }
        guard json.members != nil else { throw Misbehaving(.strayOutput(text)) }
        if state.result != nil || state.refusal != nil {
            throw Misbehaving(json["reply"]?.string == "result" ? .twoResults : .moreAfterResult(text))
        }
        switch json["reply"]?.string {
        case "progress":
            try onProgress(
                json["what"]?.string ?? step, Int(clamping: json["done"]?.integer ?? 0),
                Int(clamping: json["total"]?.integer ?? 0))
        case "log": onLog(json["text"]?.string ?? "")
        case "intent":
            try onIntent(json["intent"] ?? .null)
            let number = json["id"] ?? .null
            state.pending += Array(
                (JSON.object([.init("message", "intentAck"), .init("id", number)]).line + "\n").utf8)
        case "result":
            try onResult()
            state.result = json
        case "error": state.refusal = try Refusal(json)
        default: throw Misbehaving(.strayReply(text))
        }
    }

    /// What was in the pipes when it ended; whatever else had them open has been ended with it.
    private func drain(_ process: StepProcess, _ state: inout State) throws {
        for index in 0..<2 {
            while true {
                let before = (state.received, state.said.count)
                if try take(index, process, &state) || before == (state.received, state.said.count) { break }
            }
        }
        if !state.line.isEmpty { throw Misbehaving(.strayOutput(String(decoding: state.line, as: UTF8.self))) }
    }

    private func drainErrors(_ process: StepProcess, _ state: inout State) throws {
        _ = try take(1, process, &state)
    }

    private func answer(_ state: State, _ ending: ChildProcess.Ending) throws -> JSON {
        switch (state.result, ending) {
        case (_, .signalled(let signal)): throw Misbehaving(.signal(signal))
        case (let result?, .exited(0)): return result
        case (_?, .exited(let status)): throw Misbehaving(.resultThenStatus(status))
        case (nil, .exited(let status)):
            if let refusal = state.refusal { throw refusal }
            throw Misbehaving(status == 0 ? .exitWithoutResult : .status(status))
        case (_, .timedOut): throw Misbehaving(.tooLong(seconds: seconds))
        }
    }

    /// Tells it to stop, then asks its group to end, then ends it.
    private func cancel(_ process: StepProcess, _ state: inout State) {
        guard !process.hasEnded else { return }
        let line = Array((JSON.object([.init("message", "cancel")]).line + "\n").utf8)
        _ = line.withUnsafeBytes { moult_write_quietly(process.input, $0.baseAddress, $0.count) }
        process.closeInput()
        for signal in [SIGTERM, SIGKILL] {
            let deadline = ContinuousClock.now + Self.grace
            while !process.hasEnded, ContinuousClock.now < deadline {
                // What it says now counts no more, but it must not wait for somebody to read it.
                var buffer = [UInt8](repeating: 0, count: 1 << 16)
                let sizes = [process.output, process.errors].map { read($0, &buffer, 1 << 16) }
                if sizes.allSatisfy({ $0 <= 0 }) { usleep(2000) }
            }
            if process.hasEnded { break }
            process.signal(signal)
        }
        // It is dead or about to be; the error at hand is the one to tell.
        _ = try? process.collect()
    }
}

/// That a step says, in order, that it cannot do what it was asked for.
struct Refusal: Error {
    let kind: String
    let code: String?
    let message: String
    let hint: String?
    let path: String?
    let isRetryable: Bool

    init(_ json: JSON) throws {
        guard let message = json["message"]?.string else {
            throw StepConversation.Misbehaving(.wrongAnswer("its error has no \"message\""))
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
            what: "the step \(step) failed at \(asked): " + visible(message) + (path.map { " (\(visible($0)))" } ?? ""),
            why: code.map { "its code for that is \(visible($0))" },
            now: hint.map(visible))
    }
}
