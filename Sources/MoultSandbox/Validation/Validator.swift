internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// Examines databases from elsewhere in its own process, where archives are read, too (`ConfinedArchive`).
///
/// SQLite reads them, and a database that crashes SQLite must not crash an update. That process cannot write any file or
/// reach the network, and its resources are limited. The command re-executes itself for that. An app cannot do that: it uses
/// the command, if that is installed.
package enum Validator: Sendable, Equatable {
    /// By a program that answers to `Validator.word`.
    case process(String)
    /// In this very process, because no other one can be started for it.
    case here(why: String)

    /// The word after a program's name that makes it an examiner; its number changes with the form of question and answer.
    package static let word = "examine-2"

    #if SANITIZED
        /// The address sanitizer's map of the memory takes terabytes of addresses by itself.
        static let memory: Int? = nil
    #else
        /// Bytes of memory for one: far above what honest databases need.
        static let memory: Int? = 1 << 30
    #endif

    /// The protection that this process can use.
    package static func present() throws -> Validator {
        guard SystemFeatures.startsPrograms else { return .here(why: "this build starts no other programs") }
        guard let own = try Files.ownProgram() else { return .here(why: "/proc is not mounted") }
        #if SANITIZED
            // The running program may be valgrind, which can only name the program that it runs.
            if WorkerService.isOffered { return .process(own) }
        #endif
        // The link leads to this very program, even if another one has its name by now.
        if WorkerService.isOffered {
            return .process(
                try Files.target(ofLink: "\(SystemFeatures.proc)/self/exe") == nil
                    ? own : "\(SystemFeatures.proc)/self/exe")
        }
        let prefix = Files.directory(of: Files.directory(of: own))
        let places = [prefix, "/usr/local", "/usr"].map { "\($0)/libexec/moult/moult" }
        for place in places where try Files.factsThroughLinks(place)?.kind == .file { return .process(place) }
        return .here(why: "no command is installed in \(prefix)/libexec/moult")
    }

    /// How far what is examined is kept from doing harm, in a few words.
    package var guardWords: String {
        switch self {
        case .process: "\(Guard.level)"
        case .here(let why): "none; databases and archives are read without a sandbox: \(why)"
        }
    }

    /// Whether every available protection is in force.
    package var isWhole: Bool {
        if case .process = self { Guard.level.landlock > 0 && Guard.level.hasSeccomp } else { false }
    }

    /// Examines databases, as many at once as there are processors, and returns a report for each.
    ///
    /// `scratch` is a directory for temporary files of SQLite. `stop` is called several times in a second, from any thread,
    /// and may end the examination by throwing.
    package func examine(
        _ exams: [Validation], scratch: String, stop: @escaping @Sendable (Validation) throws -> Void = { _ in }
    ) throws -> [ValidationReport] {
        guard exams.count > 1 else {
            return try exams.map { try examine($0, scratch: scratch) { validation in try stop(validation) } }
        }
        let queue = ValidationQueue(exams)
        let threads = try (0..<min(exams.count, Threads.cores)).map { _ in
            try Threads.start { [self] in
                while let (number, validation) = queue.next() {
                    queue.put(
                        Result { try examine(validation, scratch: "\(scratch)-\(number)", stop: stop) }, at: number)
                }
            }
        }
        for thread in threads { thread.wait() }
        return try queue.reports()
    }

    private func examine(_ validation: Validation, scratch: String, stop: (Validation) throws -> Void) throws
        -> ValidationReport
    {
        let before = try Files.factsThroughLinks(validation.path)
        var report = try ask(validation, scratch: scratch) { try stop(validation) }
        if report.failure?.code == .deadline { report.failure = validation.tookTooLong }
        guard try Files.factsThroughLinks(validation.path) == before else {
            throw MoultError(
                .validation, .refused, what: validation.failure, why: "it was changed while it was read",
                now: validation.advice)
        }
        return report
    }

    /// Runs migrations on a copy; `scratch` and `stop` are as for an exam.
    package func `try`(_ trial: MigrationRun, scratch: String, stop: () throws -> Void) throws -> TrialReport {
        try ask(trial, scratch: scratch, stop: stop)
    }

    private func ask<Asked: WorkerRequest>(
        _ question: Asked, scratch: String, stop: () throws -> Void
    ) throws -> Asked.Answer {
        switch self {
        case .here:
            try stop()
            return question.take()
        case .process(let program):
            let inquiry = WorkerCall(program: program, question: question, scratch: scratch)
            do { return try inquiry.run(stop: stop) } catch is WorkerCall<Asked>.NotKnown { return question.take() }
        }
    }
}
