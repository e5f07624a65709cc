import MoultBasics
import MoultFiles

extension Scratch {
    /// Runs a shell command in the directory, with `moult` as the built command.
    @discardableResult
    package func run(_ line: String, environment: [String: String] = [:]) throws -> Shell.Ended {
        let all = ["PATH": "\(try BuiltMoult.directory()):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        return try Shell.run(["bash", "-c", line], in: path, environment: all.merging(environment) { $1 })
    }

    /// Runs a command that must succeed, and returns its output.
    @discardableResult
    package func must(_ line: String, environment: [String: String] = [:]) throws -> String {
        let ended = try run(line, environment: environment)
        guard ended.status == 0 else {
            throw MoultError(.system, what: "\(line) ended with \(ended.status)", why: ended.errors + ended.output)
        }
        return ended.output
    }
}
