internal import Glibc
internal import MoultBasics
internal import MoultFiles
internal import MoultGuard

/// One exam in a process of its own, and what its end means.
struct ExamProcess {
    let program: String
    let exam: Exam
    /// A directory for what SQLite has to put aside; it is made for this, and removed.
    let scratch: String

    #if SANITIZED
        /// The address sanitizer's map of the memory takes terabytes of addresses by itself.
        static let memory: Int? = nil
    #else
        /// Far above what honest databases need.
        static let memory: Int? = 1 << 30
    #endif

    /// What it may use, beside its time.
    static func limits(for exam: Exam, size: Int) -> Guard.Limits {
        // What is sorted is put aside, and is hardly ever larger than all there is.
        Guard.Limits(memory: memory, processor: processor(exam), fileSize: max(64 << 20, 2 * size))
    }

    /// What SQLite does not stop by itself.
    private static func processor(_ exam: Exam) -> Int { exam.deadline + 5 }

    /// The program is one that does not know how to examine: an older moult, or another one.
    struct NoExaminer: Error {}

    func run(stop: () throws -> Void) throws -> ExamReport {
        try Files.ensureDirectory(scratch, mode: 0o700)
        let result = Result { try report(stop) }
        try Files.removeTree(scratch)
        return try result.get()
    }

    private func report(_ stop: () throws -> Void) throws -> ExamReport {
        let before = try Files.factsThroughLinks(exam.path)
        // Its end says what happened. To print where it fell takes seconds, and hides the signal.
        let child = try StreamingChild(
            [program, Examiner.word], environment: ["SWIFT_BACKTRACE": "enable=no"], input: Array(question.line.utf8))
        var answer: [UInt8] = []
        do {
            // It stops on its own; this is for one that hangs.
            let end = ContinuousClock.now + .seconds(exam.deadline + 15)
            func stopInTime() throws {
                try stop()
                if ContinuousClock.now > end { throw refused("it did not end in time") }
            }
            while let block = try child.read(patience: exam.deadline + 60, stop: stopInTime) {
                answer += block
                if answer.count > ExamService.largest { throw refused("its answer does not end") }
            }
        } catch {
            child.kill()
            throw error
        }
        let report = try self.report(answer, child.finish(), stop)
        guard try Files.factsThroughLinks(exam.path) == before else {
            throw refused("it was changed while it was looked at")
        }
        return report
    }

    private var question: JSON { exam.json.setting("scratch", to: .string(scratch)) }

    private func report(
        _ answer: [UInt8], _ end: ChildProcess.Result, _ stop: () throws -> Void
    ) throws -> ExamReport {
        switch end.ending {
        case .exited(0):
            return try ExamReport(
                Fields(JSON(parsing: answer, source: "the answer about \(exam.name)")) { place, why, _ in
                    refused("\(place) of its answer \(why)")
                })
        // Whoever stops all of us, as the shell does, means this one, too.
        case .signalled(let signal) where [SIGINT, SIGTERM, SIGHUP].contains(signal):
            try stop()
            throw MoultError(
                .exam, .busy, what: "checking \(exam.name) was interrupted", why: "signal \(signal) ended it",
                now: "Try again.")
        // What the command says to a verb that it does not have.
        case .exited(64): throw NoExaminer()
        case .signalled(let signal): throw refused(reason(signal))
        case .exited, .timedOut: throw refused("it was stopped: \(end.complaint)")
        }
    }

    private func reason(_ signal: Int32) -> String {
        switch signal {
        case SIGXCPU: "it took more than \(Self.processor(exam)) s of the processor"
        case SIGXFSZ: "it wanted more room on the disk than twice its size"
        case SIGKILL: "SIGKILL ended the check, as where memory runs out"
        default: "\(Self.names[signal] ?? "signal \(signal)") ended the check"
        }
    }

    private static let names: [Int32: String] = [
        SIGSEGV: "SIGSEGV", SIGBUS: "SIGBUS", SIGABRT: "SIGABRT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
        SIGFPE: "SIGFPE", SIGSYS: "SIGSYS",
    ]

    private func refused(_ why: String) -> MoultError {
        MoultError(
            .exam, .refused, what: "\(exam.name) cannot be checked", why: why,
            now: "Nothing was changed. Publish the release again from a sound file.")
    }
}
