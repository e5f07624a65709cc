internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import Synchronization

/// A request to a separate process about untrusted data.
protocol WorkerRequest: Sendable {
    associatedtype Answer: Sendable
    /// The first argument that makes a program answer such requests. Its number changes with their format.
    static var verb: String { get }
    init(_ fields: Fields) throws
    var json: JSON { get }
    /// The limit on processor time for the whole request, in seconds.
    var processor: Int { get }
    /// Returns what the process may read, write and use; `scratch` is a directory for SQLite's temporary files.
    func protection(scratch: String) throws -> Guard
    /// Returns the request with other paths for the same files.
    func mapping(_ path: (String) -> String) -> Self
    /// Does the work in this process.
    func perform() -> Answer
    static func json(of answer: Answer) -> JSON
    static func answer(_ fields: Fields) throws -> Answer

    /// The operation that fails if the process fails: "food.db cannot be checked".
    var failure: String { get }
    /// The work of the process: "the check".
    var work: String { get }
    /// The disk space that the process may use: "twice the database's size".
    var diskLimit: String { get }
    /// The advice if the process fails.
    var advice: Advice { get }
    /// The advice if the process takes too long.
    var timeoutAdvice: Advice { get }
}

/// Sends a request to a separate process, and interprets how that process ends.
struct WorkerCall<Asked: WorkerRequest> {
    let program: String
    let request: Asked
    /// A directory for SQLite's temporary files; created and removed for this call.
    let scratch: String

    /// The program does not support such requests: it is an older moult, or a different program. It has not opened the
    /// database.
    struct NotSupported: Error {}

    func run(stop: () throws -> Void) throws -> Asked.Answer {
        try Files.ensureDirectory(scratch, mode: 0o700)
        let result = Result { try answer(stop) }
        try Files.removeTree(scratch)
        return try result.get()
    }

    private func answer(_ stop: () throws -> Void) throws -> Asked.Answer {
        // The exit status shows what happened. Printing a backtrace takes seconds, and hides the signal.
        var command = Subprocess.Command([program, Asked.verb], environment: ["SWIFT_BACKTRACE": "enable=no"])
        command.endsWithParent = true
        var files: [Int32] = []
        let request = self.request.mapping { PinnedDirectory.pathInChild($0, &files) }
        let place = PinnedDirectory.pathInChild(scratch, &files)
        command.files = files
        let child = try Subprocess(
            command, input: .bytes(request.json.setting("scratch", to: .string(place)).message))
        var lines = MessageLines(longest: WorkerService.largest)
        var messages: [[UInt8]] = []
        do {
            // The process stops by itself; this limit is for a process that hangs. On a busy machine, the process gets only
            // part of a processor.
            let patience = 10 * request.processor + 15
            let end = ContinuousClock.now + .seconds(patience)
            func stopInTime() throws {
                try stop()
                if ContinuousClock.now > end {
                    throw refused("\(request.work) did not end in time", now: request.timeoutAdvice)
                }
            }
            while let block = try child.read(patience: patience + 60, stop: stopInTime) {
                lines.add(block)
                while let message = try lines.next(), messages.count < 2 { messages.append(message) }
            }
        } catch is MessageLines.TooLong {
            child.kill()
            throw refused("the result of \(request.work) is too long")
        } catch {
            child.kill()
            throw error
        }
        return try answer(messages, child.finish(), stop)
    }

    private func answer(
        _ messages: [[UInt8]], _ end: Subprocess.Result, _ stop: () throws -> Void
    ) throws -> Asked.Answer {
        let isReady = messages.first == WorkerService.ready
        switch end.ending {
        case .exited(0) where isReady && messages.count > 1:
            return try Asked.answer(
                Fields(JSON(parsing: messages[1], source: "the result of \(request.work)")) { place, why, _ in
                    refused("\(place) in the result of \(request.work) \(why)")
                })
        // A signal to the whole process group, as sent by Ctrl-C, ends this process too.
        case .signalled(let signal) where [SIGINT, SIGTERM, SIGHUP].contains(signal):
            try stop()
            throw MoultError(
                .validation, .busy, what: request.failure,
                why: "\(request.work) was interrupted: its process was killed by signal \(signal)", now: "Try again.")
        // The command's reply to an unknown verb. A database that has taken over the process cannot send it.
        case .exited(64) where !isReady: throw NotSupported()
        case .signalled(let signal):
            throw refused(reason(signal), now: signal == SIGXCPU ? request.timeoutAdvice : nil)
        case .exited, .timedOut: throw refused("the process that runs \(request.work) failed: \(end.complaint)")
        }
    }

    private func reason(_ signal: Int32) -> String {
        crashReason(
            signal, request.work, excessiveTime: "more than \(request.processor) s of CPU time",
            diskLimit: request.diskLimit)
    }

    private func refused(_ why: String, now: Advice? = nil) -> MoultError {
        MoultError(.validation, .refused, what: request.failure, why: why, now: now ?? request.advice)
    }
}

/// Returns a description of the signal that ended a sandboxed process.
func crashReason(_ signal: Int32, _ work: String, excessiveTime: String, diskLimit: String) -> String {
    let names: [Int32: String] = [
        SIGSEGV: "SIGSEGV", SIGBUS: "SIGBUS", SIGABRT: "SIGABRT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
        SIGFPE: "SIGFPE", SIGSYS: "SIGSYS",
    ]
    return switch signal {
    case SIGXCPU: "\(work) took \(excessiveTime)"
    case SIGXFSZ where Subprocess.hasFileSizeLimit:
        "\(work) needed larger files than this shell allows (ulimit -f), or more disk space than \(diskLimit)"
    case SIGXFSZ: "\(work) needed more disk space than \(diskLimit)"
    case SIGKILL: "\(work) ended with SIGKILL, probably because memory ran out"
    default: "\(work) ended with \(names[signal] ?? "signal \(signal)")"
    }
}

/// The service side of a validation: a process started only for this purpose.
package enum WorkerService {
    private static let offered = Atomic(false)

    /// Whether this program, started again with `Validator.verb`, is a validator.
    static var isOffered: Bool { offered.load(ordering: .relaxed) }

    /// The maximum size of a request or a reply in bytes.
    static let largest = 16 << 20

    /// Answers a request and ends the process if the arguments say so; otherwise records that this program can answer requests.
    package static func offer(_ words: [String?]) {
        do {
            switch words {
            case [Validation.verb]: try serve(Validation.self)
            case [MigrationRun.verb]: try serve(MigrationRun.self)
            case [SalvageRun.verb]: try serve(SalvageRun.self)
            case [ArchiveRequest.verb]: try ArchiveService.serve()
            default: return offered.store(true, ordering: .relaxed)
            }
        } catch {
            // Only the parent process can read this text.
            let text = Array("\(error)\n".utf8)
            _ = MoultLibc.write(2, text, text.count)
            exit(1)
        }
        exit(0)
    }

    /// The line sent before the reply, and before the database is opened.
    static let ready = Array("ready".utf8)

    private static func serve<Asked: WorkerRequest>(_: Asked.Type) throws {
        var parent = ParentChannel(longest: largest)
        guard let json = try parent.next() else { throw MoultError(.validation, what: "the request is missing") }
        let fields = try Fields(json) { place, why, _ in
            MoultError(.validation, what: "\(place) of the request \(why)")
        }
        let request = try Asked(fields)
        let scratch = try fields.string("scratch")
        guard setenv("SQLITE_TMPDIR", scratch, 1) == 0 else { throw MoultError(.validation, what: "out of memory") }
        try request.protection(scratch: scratch).confineThisProcess()
        // Deadlines count processor time, because on a busy machine this process gets only part of a processor.
        DeadlineClock.countProcessorTime()
        try (ready + [UInt8(ascii: "\n")]).withUnsafeBytes { try ParentChannel.send($0) }
        try ParentChannel.send(Asked.json(of: request.perform()))
    }
}
