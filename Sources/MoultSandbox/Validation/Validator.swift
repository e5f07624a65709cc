internal import MoultBasics
internal import MoultFiles
package import MoultSQLite
internal import Synchronization

/// Validates untrusted databases in a separate process, where archives are read too (`ConfinedArchive`).
///
/// A database that crashes SQLite must not crash an update. The separate process cannot reach the network, or write files other
/// than temporary ones and copies, and its resources are limited. The command re-executes itself for this. An app cannot do
/// that, so it uses the installed command, if any.
package enum Validator: Sendable, Equatable {
    /// In a separate process of this program, which is a validator if its first argument is `Validator.verb`.
    case process(String)
    /// In this process, because no separate process can be started.
    case here(why: String)

    /// The first argument that makes a program a validator. Its number changes with the format of requests and replies.
    package static let verb = "examine-2"

    #if SANITIZED
        /// The address sanitizer's shadow memory alone takes terabytes of address space.
        static let memory: Int? = nil
    #else
        /// The memory limit in bytes: far above what honest databases need.
        static let memory: Int? = 1 << 30
    #endif

    /// Returns the validator that is available to this process.
    package static func available() throws -> Validator {
        guard SystemFeatures.startsPrograms else { return .here(why: "this build cannot start other programs") }
        guard let own = try Files.ownProgram() else { return .here(why: "/proc is not mounted") }
        #if SANITIZED
            // The running program may be valgrind, which knows the program that it runs only by name.
            if WorkerService.isOffered { return .process(own) }
        #endif
        // `/proc/self/exe` leads to this program, even if another program now has its name.
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

    /// How the process that reads untrusted data is restricted, in a few words.
    package var guardDescription: String {
        switch self {
        case .process: "\(Guard.level)"
        case .here(let why): "none; databases and bundles are read without a sandbox: \(why)"
        }
    }

    /// Whether all protections are in force: a separate process, Landlock and seccomp.
    package var isFullyConfined: Bool {
        if case .process = self { Guard.level.landlock > 0 && Guard.level.hasSeccomp } else { false }
    }

    /// Validates databases, as many at once as there are processors, and returns a report for each.
    ///
    /// `scratch` is a directory for SQLite's temporary files. `stop` is polled several times a second, from any thread, and may
    /// throw to cancel.
    package func examine(
        _ exams: [Validation], scratch: String, stop: @escaping @Sendable (Validation) throws -> Void = { _ in }
    ) throws -> [ValidationReport] {
        let reports = Mutex([ValidationReport?](repeating: nil, count: exams.count))
        try Workers.run(jobs: exams.count, threads: Threads.cores) {
            { number in
                let report = try examine(exams[number], scratch: "\(scratch)-\(number)", stop: stop)
                reports.withLock { $0[number] = report }
            }
        }
        return reports.withLock { $0.compactMap(\.self) }
    }

    private func examine(_ validation: Validation, scratch: String, stop: (Validation) throws -> Void) throws
        -> ValidationReport
    {
        let before = try Files.factsThroughLinks(validation.path)
        var report = try ask(validation, scratch: scratch) { try stop(validation) }
        if report.failure?.code == .deadline { report.failure = validation.tookTooLong }
        guard try Files.factsThroughLinks(validation.path) == before else {
            throw MoultError(
                .validation, .refused, what: validation.failure, why: "the file was changed while it was read",
                now: validation.advice)
        }
        return report
    }

    /// Runs migrations on a copy; `scratch` and `stop` are as for `examine`.
    package func `try`(_ trial: MigrationRun, scratch: String, stop: () throws -> Void) throws -> TrialReport {
        try ask(trial, scratch: scratch, stop: stop)
    }

    /// Salvages the rows of a database as `Salvage.run` does; `stop` is as for `examine`.
    package func salvage(
        _ path: String, name: String, template: String?, to target: String, scratch: String, stop: () throws -> Void
    ) throws -> Salvage.Report {
        try Salvage.run(path, template: template, to: target, scratch: scratch) { copy, found in
            let run = SalvageRun(name: name, copy: copy, target: found, processor: 300)
            return try ask(run, scratch: "\(scratch)/exam", stop: stop).get()
        }
    }

    private func ask<Asked: WorkerRequest>(
        _ request: Asked, scratch: String, stop: () throws -> Void
    ) throws -> Asked.Answer {
        switch self {
        case .here:
            try stop()
            return request.perform()
        case .process(let program):
            let call = WorkerCall(program: program, request: request, scratch: scratch)
            do { return try call.run(stop: stop) } catch is WorkerCall<Asked>.NotSupported { return request.perform() }
        }
    }
}
