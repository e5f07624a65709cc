internal import MoultBasics
internal import MoultFiles

/// Waits until no other process has a file open, as required for replacing it.
struct ExclusiveAccess {
    let path: String
    let stop: () throws -> Void

    /// Waits until the deadline for other processes to close the file. Then kills them if `mayKill` is true; otherwise throws.
    func wait(until deadline: ContinuousClock.Instant, mayKill: Bool, warn: (String) -> Void) throws {
        if try isFree(by: deadline) { return }
        guard mayKill else { throw held() }
        let isFreed = try Blockers.end(
            { try OpenFiles.holders(of: [path]).map(\.pid) }, because: { "\($0) still has \(path) open" }, warn, isFree)
        if !isFreed { throw held() }
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
            now: "Nothing was changed. Stop that program and try again"  // An app kills no other process.
                + "\(commandLine: ", or let moult kill it: --force-after SECONDS", app: ".")")
    }
}
