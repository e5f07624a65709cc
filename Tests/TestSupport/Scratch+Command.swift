import MoultBasics
import MoultFiles

extension Scratch {
    /// Runs a shell script in the directory, with `moult` as the built command.
    package func run(_ script: String, environment: [String: String] = [:]) throws -> Shell.Ended {
        try run(script, options: [], environment: environment)
    }

    /// Runs a shell script, in which each command must succeed, and returns its output. A single command may instead be
    /// required to end with another status.
    @discardableResult
    package func must(_ script: String, status: Int32 = 0, environment: [String: String] = [:]) throws -> String {
        let ended = try run(script, options: Shell.strict, environment: environment)
        guard ended.status == status else {
            throw MoultError(.system, what: "\(script) ended with \(ended.status)", why: ended.errors + ended.output)
        }
        return ended.output
    }

    private func run(_ script: String, options: [String], environment: [String: String]) throws -> Shell.Ended {
        let path = "\(try BuiltMoult.directory()):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return try Shell.run(
            ["bash"] + options + ["-c", script], in: self.path, environment: ["PATH": path].merging(environment) { $1 })
    }
}
