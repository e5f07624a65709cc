internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite

/// The error for a database that another process is using.
enum InUse {
    static func error(_ path: String, advice: String, cause: (any Error)? = nil) -> MoultError {
        // Only root can see which files the processes of other users have open.
        let users = try? OpenFiles.users(of: [path] + Sidecars.of(path).paths)
        return MoultError(
            .inUse, .busy, what: "\(path) is in use",
            why: users ?? "a process has it open or locked",
            now: advice, cause: cause)
    }
}
