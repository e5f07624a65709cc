internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// The error for a database that another process is using.
enum InUse {
    static func error(_ path: String, advice: Advice, cause: (any Error)? = nil) -> MoultError {
        // Only root can see which files the processes of other users have open.
        let users = try? OpenFiles.users(of: [path] + Sidecars.of(path).paths)
        let isOwn = users == nil && AppProcess.isCurrent
        return MoultError(
            .inUse, .busy, what: "\(path) is in use",
            why: users
                ?? (isOwn
                    ? "no other process is seen to have it open, so a connection of this one has locked it"
                    : "a process has it open or locked"),
            now: isOwn ? "End the transactions and statements of this process, and try again." : advice, cause: cause)
    }
}
