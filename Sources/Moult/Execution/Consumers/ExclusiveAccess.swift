internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// Waits until no other process has a file open, as required for replacing it.
struct ExclusiveAccess {
    let path: String
    let stop: () throws -> Void

    /// The time that a process gets to exit after SIGTERM.
    private static let grace = Duration.seconds(2)

    /// Waits until the deadline for other processes to close the file. Then kills them if `mayKill` is true; otherwise throws.
    func wait(until deadline: ContinuousClock.Instant, mayKill: Bool, warn: (String) -> Void) throws {
        if try isFree(by: deadline) { return }
        guard mayKill else { throw held() }
        for signal in [SIGTERM, SIGKILL] {
            for holder in try OpenFiles.holders(of: [path]) {
                guard let process = try SignalTarget.find(pid: holder.pid),
                    try OpenFiles.isOpen([path], in: process.pid)
                else { continue }
                let name = signal == SIGTERM ? "TERM" : "KILL"
                warn("\(holder.description) still has \(path) open; moult sends SIG\(name) to this process")
                // The next check shows whether the file is free.
                _ = try? process.send(signal)
            }
            if try isFree(by: .now + Self.grace) { return }
        }
        throw held()
    }

    /// Waits until the deadline for other processes to close the file; returns whether they have. Only then does the kernel
    /// grant a lease.
    private func isFree(by deadline: ContinuousClock.Instant) throws -> Bool {
        var backoff = Backoff(until: deadline, longest: 10)
        repeat {
            guard let facts = try Files.facts(path), facts.kind == .file else { return true }
            if try WriteLease.take(path, patience: .zero) != nil { return true }
            try stop()
        } while backoff.pause()
        return false
    }

    private func held() -> MoultError {
        // Processes of other users may have the file open, and may be invisible to this process.
        let users = try? OpenFiles.users(of: [path], here: path)
        return MoultError(
            .inUse, .busy, what: "\(path) is in use", why: users ?? "another process has it open",
            now: "Nothing was changed. Stop that program and try again"
                // An app kills no other process.
                + "\(commandLine: ", or let moult kill it: --force-after SECONDS", app: ".")")
    }
}
