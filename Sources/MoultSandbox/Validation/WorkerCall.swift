internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// A request to a separate process about untrusted data.
protocol WorkerRequest: Sendable {
    associatedtype Answer: Sendable
    /// The word after a program's name that makes it answer such questions; its number changes with their form.
    static var word: String { get }
    init(_ fields: Fields) throws
    var json: JSON { get }
    /// Seconds of the processor for all of it.
    var processor: Int { get }
    /// What that process may read and write, and use; `scratch` is a directory for what SQLite has to put aside.
    func protection(scratch: String) throws -> Guard
    /// Works in this very process.
    func take() -> Answer
    static func json(of answer: Answer) -> JSON
    static func answer(_ fields: Fields) throws -> Answer

    /// What cannot be done if that process fails: "food.db cannot be checked".
    var failure: String { get }
    /// Its current task: "the check".
    var work: String { get }
    /// More room on the disk than it may have, in words.
    var muchRoom: String { get }
    /// What to do now.
    var advice: String { get }
    /// What to do if it took too long.
    var adviceOnTime: String { get }
}

/// A question to a separate process, and what the end of that process means.
struct WorkerCall<Asked: WorkerRequest> {
    let program: String
    let question: Asked
    /// A directory for what SQLite has to put aside; it is made for this, and removed.
    let scratch: String

    /// The program does not know such questions: an older moult, or another one. It has not opened the database.
    struct NotKnown: Error {}

    func run(stop: () throws -> Void) throws -> Asked.Answer {
        try Files.ensureDirectory(scratch, mode: 0o700)
        let result = Result { try answer(stop) }
        try Files.removeTree(scratch)
        return try result.get()
    }

    private func answer(_ stop: () throws -> Void) throws -> Asked.Answer {
        // Its end says what happened. To print where it fell takes seconds, and hides the signal.
        var command = Subprocess.Command([program, Asked.word], environment: ["SWIFT_BACKTRACE": "enable=no"])
        command.endsWithParent = true
        let child = try Subprocess(
            command, input: .bytes(question.json.setting("scratch", to: .string(scratch)).message))
        var lines = MessageLines(longest: WorkerService.largest)
        var messages: [[UInt8]] = []
        do {
            // It stops on its own; this is for one that hangs.
            // A busy machine gives it a part of a processor only.
            let patience = 10 * question.processor + 15
            let end = ContinuousClock.now + .seconds(patience)
            func stopInTime() throws {
                try stop()
                if ContinuousClock.now > end { throw refused("it did not end in time", now: question.adviceOnTime) }
            }
            while let block = try child.read(patience: patience + 60, stop: stopInTime) {
                lines.add(block)
                while let message = try lines.next(), messages.count < 2 { messages.append(message) }
            }
            // Older versions do not end their answer.
            messages.append(lines.rest())
        } catch is MessageLines.TooLong {
            child.kill()
            throw refused("its answer does not end")
        } catch {
            child.kill()
            throw error
        }
        return try answer(messages, child.finish(), stop)
    }

    private func answer(
        _ messages: [[UInt8]], _ end: Subprocess.Result, _ stop: () throws -> Void
    ) throws -> Asked.Answer {
        let isReady = messages.count > 1 && messages[0] == WorkerService.ready
        switch end.ending {
        case .exited(0) where isReady:
            return try Asked.answer(
                Fields(JSON(parsing: messages[1], source: "the answer about \(question.work)")) { place, why, _ in
                    refused("\(place) of its answer \(why)")
                })
        // A signal to the whole process group, as Ctrl-C sends it, ends this process, too.
        case .signalled(let signal) where [SIGINT, SIGTERM, SIGHUP].contains(signal):
            try stop()
            throw MoultError(
                .validation, .busy, what: "\(question.failure): it was interrupted", why: "signal \(signal) ended it",
                now: "Try again.")
        // The command's reply to an unknown verb. A database that has taken over the process cannot send it.
        case .exited(64) where !isReady: throw NotKnown()
        case .signalled(let signal):
            throw refused(reason(signal), now: signal == SIGXCPU ? question.adviceOnTime : nil)
        case .exited, .timedOut: throw refused("it was stopped: \(end.complaint)")
        }
    }

    private func reason(_ signal: Int32) -> String {
        CrashReason(signal: signal).reason(
            question.work, muchTime: "more than \(question.processor) s of the processor", muchRoom: question.muchRoom)
    }

    private func refused(_ why: String, now: String? = nil) -> MoultError {
        MoultError(.validation, .refused, what: question.failure, why: why, now: now ?? question.advice)
    }
}

/// A signal that ended a confined process, in words.
struct CrashReason {
    let signal: Int32

    func reason(_ work: String, muchTime: String, muchRoom: String) -> String {
        switch signal {
        case SIGXCPU: "it took \(muchTime)"
        case SIGXFSZ where Subprocess.hasFileSizeLimit:
            "it needed larger files than this shell allows (ulimit -f), or more disk space than \(muchRoom)"
        case SIGXFSZ: "it needed more disk space than \(muchRoom)"
        case SIGKILL: "SIGKILL ended \(work), probably because memory ran out"
        default: "\(Self.names[signal] ?? "signal \(signal)") ended \(work)"
        }
    }

    private static let names: [Int32: String] = [
        SIGSEGV: "SIGSEGV", SIGBUS: "SIGBUS", SIGABRT: "SIGABRT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
        SIGFPE: "SIGFPE", SIGSYS: "SIGSYS",
    ]
}
