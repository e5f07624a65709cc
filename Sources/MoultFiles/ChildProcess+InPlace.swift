internal import CLinux
internal import Glibc
internal import MoultBasics

extension ChildProcess {
    /// Runs a program in the place of this one: with its output and its terminal, to its end.
    ///
    /// `isStopping` is asked ten times in a second. When it says so the program is asked to end, too, and killed if it does
    /// not within two seconds.
    package static func runInPlace(
        _ arguments: [String], environment: [String: String] = [:], isStopping: () -> Bool = { false }
    ) throws -> Ending {
        let name = arguments.first ?? ""
        let pid = try spawn(arguments, nil, environment, [], isGroup: false, output: 1, errors: 2)
        let end = moult_pidfd_open(pid)
        guard end >= 0 else {
            let error = Errno(moult_errno()).error("cannot wait for \(name)")
            _ = Glibc.kill(pid, SIGKILL)
            _ = try wait(pid, for: name)
            throw error
        }
        defer { Glibc.close(end) }
        var request = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
        var asked = 0
        // Waiting is interrupted by signals only, and then asked again.
        while poll(&request, 1, 100) <= 0 {
            guard asked > 0 || isStopping() else { continue }
            if asked == 0 { _ = Glibc.kill(pid, SIGTERM) }
            asked += 1
            if asked == 20 { _ = Glibc.kill(pid, SIGKILL) }
        }
        return try wait(pid, for: name)
    }
}
