internal import CLinux
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import Synchronization

/// Starts the same program again, with the same command line, for a verb that opens possibly hostile databases. The new process
/// confines itself before it opens the first database; if it crashes, this process reports the error.
package enum SandboxedReexec {
    /// The first argument of such a process, before its scratch directory and the command line.
    private static let marker = "secluded-1"

    /// The scratch directory of this process, empty without one; nil if this is not such a process.
    private static let scratchArgument = Mutex<String?>(nil)

    /// Recognizes, by its first argument, a process that `carryOut` started. Returns the command line without the arguments
    /// that `carryOut` added.
    package static func enter(_ words: [String?]) -> [String?] {
        guard words.count > 1, words[0] == marker, let scratch = words[1] else { return words }
        scratchArgument.withLock { $0 = scratch }
        return Array(words.dropFirst(2))
    }

    /// Whether this process was started by `carryOut`.
    package static var isEntered: Bool { scratchArgument.withLock { $0 != nil } }

    /// The directory that this process may write to; nil without one, or if it is not sandboxed.
    package static var scratch: String? { scratchArgument.withLock { $0.flatMap { $0.isEmpty ? nil : $0 } } }

    /// Runs this process's command line in another process and returns its exit status. Nil if the caller must do the work
    /// itself: this is already that other process, or the program cannot start itself.
    ///
    /// `what` names the operation that fails if that process crashes: "compare a.db with b.db". `body` gets the directory in
    /// which the process may have left files.
    package static func carryOut(
        _ what: String, stopSignal: () -> Int32?, body: (_ scratch: String) throws -> Void
    ) throws -> Int32? {
        guard scratchArgument.withLock({ $0 }) == nil, WorkerService.isOffered,
            case .process(let program) = try Validator.available()
        else { return nil }
        let directory = try makeScratch()
        let scratch = directory?.path
        let result = Result {
            // Without /proc, Swift's own list is empty.
            let arguments = (1..<max(1, moult_argument_count())).compactMap { moult_argument($0) }
            let words =
                try [program, marker, scratch ?? ""] + arguments.map { try OutsideText.path($0, "an argument") }
            var environment = ["SWIFT_BACKTRACE": "enable=no"]
            if let scratch { (environment["TMPDIR"], environment["SQLITE_TMPDIR"]) = (scratch, scratch) }
            let ending = try Subprocess.runInPlace(words, environment: environment, stopSignal: stopSignal)
            let status = try status(of: ending, what)
            if let scratch { try body(scratch) }
            return status
        }
        if let scratch { try withExtendedLifetime(directory) { try Files.removeTree(scratch) } }
        return try result.get()
    }

    /// Returns nil if no directory can be created, because most databases need none.
    private static func makeScratch() throws -> ScratchDirectory? {
        do { return try ScratchDirectory() } catch let error as MoultError where error.outcome != .refused {
            return nil
        }
    }

    private static func status(of ending: Subprocess.Ending, _ what: String) throws -> Int32 {
        switch ending {
        case .exited(let status): return status
        case .signalled(let signal):
            throw MoultError(
                .validation, .refused, what: "cannot \(what)",
                why: crashReason(
                    signal, "the process that reads the databases",
                    excessiveTime: "more CPU time than legitimate databases of that size need",
                    diskLimit: "four times the databases' size"),
                now: "Nothing was changed. Try again with more memory; if it fails again, do not use this database.")
        case .timedOut:
            throw MoultError(
                .validation, what: "cannot \(what)", why: "the process that reads the databases did not end in time")
        }
    }

    /// Restricts a process started by `carryOut` to reading these databases. From here on the process reads no file outside
    /// their directories, writes only to its scratch directory, and starts no program.
    package static func confine(to databases: [String]) throws {
        guard scratchArgument.withLock({ $0 }) != nil else { return }
        // A process with several threads cannot be confined, and the thread of a progress display takes a moment to end.
        for _ in 0..<100 where !Confinement.isPossible { usleep(10_000) }
        // Loads the time zone now, because its file cannot be read later.
        tzset()
        let sizes = try databases.map { try Files.factsThroughLinks($0)?.size ?? 0 }.reduce(0, +)
        // SQLite's sidecars are next to the database itself, and may appear and disappear, so the whole directory can be read.
        let files = try databases.map(Files.resolvedIfThere).filter { try Files.factsThroughLinks($0) != nil }
        let directories = Set(databases.map { Files.directory(of: Files.resolvedIfThere($0)) })
        try Guard(
            .examiner, reading: .only(directories.sorted() + files), writing: scratch.map { [$0] } ?? [],
            limits: .init(
                memory: Validator.memory.map { 2 * $0 }, processor: 60 + sizes / 250_000,
                fileSize: max(1 << 30, 4 * sizes))
        ).confineThisProcess()
        SQLWatchdog.start()
    }
}
