internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite

/// The processes whose locks keep an update from databases, found in the kernel's table. They are named in messages, and
/// `--force-after` ends them; whether a database is free is decided by SQLite.
struct Blockers {
    let places: [String]

    /// For how long a process must hold its lock to count: others only pass by.
    private static let observation = Duration.seconds(1)

    /// Returns the error with the names of the processes, and with the option that ends them if the command has it.
    func named(in error: MoultError, offersForce: Bool) -> MoultError {
        var error = error
        // If the table cannot be read, the error stays as it is.
        let found = ((try? pids()) ?? []).sorted().map { ProcessFacts(pid: $0).description }
        if !found.isEmpty {
            error.why = "\(found.joined(separator: ", ")) \(found.count == 1 ? "has" : "have") locked it"
        }
        if offersForce, let now = error.now {
            let force: Advice = " To let moult end the processes that block the update: --force-after SECONDS"
            error.now = now + "\(commandLine: force, app: "")"
        }
        return error
    }

    /// Ends the processes. Throws if there are none to be seen.
    func end(because error: MoultError, _ watcher: Watcher) throws {
        var wanted = try pids()
        var backoff = Backoff(Self.observation, longest: 50)
        while !wanted.isEmpty, backoff.pause() {
            try watcher.stopIfAsked()
            wanted.formIntersection(try pids())
        }
        if wanted.isEmpty {
            var error = error
            let hidden = "moult cannot find the process that has locked it, which may run in another PID namespace"
            error.why = [error.why, hidden].compactMap(\.self).joined(separator: "; ")
            throw error
        }
        _ = try Self.end(
            { try wanted.intersection(pids()).sorted() }, because: { "\($0) blocks the update" },
            { watcher.tell(.warning(Advice($0))) },
            { deadline in
                var backoff = Backoff(until: deadline, longest: 50)
                repeat { wanted.formIntersection(try pids()) } while !wanted.isEmpty && backoff.pause()
                return wanted.isEmpty
            })
    }

    /// Sends TERM, and KILL two seconds later, to the processes that `blocking` returns. Returns whether `isFree` is true then; whether
    /// a signal was sent does not matter.
    static func end(
        _ blocking: () throws -> [Int32], because reason: (_ process: String) -> String, _ warn: (String) -> Void,
        _ isFree: (_ deadline: ContinuousClock.Instant) throws -> Bool
    ) throws -> Bool {
        for (signal, name) in [(SIGTERM, "SIGTERM"), (SIGKILL, "SIGKILL")] {
            for pid in try blocking() {
                guard let process = try SignalTarget.find(pid: pid), try blocking().contains(pid) else { continue }
                warn("\(reason(ProcessFacts(pid: pid).description)); moult sends \(name) to this process")
                _ = try? process.send(signal)
            }
            if try isFree(.now + .seconds(2)) { return true }
        }
        return false
    }

    /// Returns the other processes that hold a lock which keeps a writer out.
    private func pids() throws -> Set<Int32> {
        let locks = try KernelLocks.read()
        var found: Set<Int32> = []
        for place in places {
            let memory = try held(on: "\(place)-shm", locks)
            // In WAL mode, readers lock the file as long as they have it open, but block no writer.
            let isWAL = Set(memory.map(\.pid))
            found.formUnion(memory.filter { $0.isExclusive && $0.bytes.overlaps(SQLiteLocks.memoryWriting) }.map(\.pid))
            found.formUnion(
                try held(on: place, locks).filter {
                    !isWAL.contains($0.pid)
                        && ($0.bytes.overlaps(SQLiteLocks.shared) || $0.bytes.overlaps(SQLiteLocks.writing))
                }.map(\.pid))
        }
        return found.filter { $0 > 0 && $0 != ProcessFacts.ownPID }
    }

    private func held(on path: String, _ locks: KernelLocks) throws -> [KernelLocks.Lock] {
        guard let facts = try Files.factsThroughLinks(path) else { return [] }
        return try locks.held(on: facts, at: path).filter { $0.kind == .record }
    }
}

enum InUse {
    static func error(_ path: String, advice: Advice, cause: (any Error)? = nil) -> MoultError {
        // Only root can see which files the processes of other users have open.
        let users = try? OpenFiles.users(of: [path] + Sidecars.of(path).paths)
        let isOwn = users == nil && AppProcess.isCurrent
        // Without /proc, no process is seen at all.
        let seesOthers = (try? Files.facts("\(SystemFeatures.proc)/self")) != nil
        return MoultError(
            .inUse, .busy, what: "\(path) is in use",
            why: users
                ?? (isOwn
                    ? (seesOthers ? "no other process is seen to have it open, so" : "another process or")
                        + " a connection of this one has locked it"
                    : "a process has it open or locked"),
            now: isOwn ? "End the transactions and statements of this process, and try again." : advice, cause: cause)
    }
}
