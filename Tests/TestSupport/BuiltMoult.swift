import MoultBasics
import MoultFiles
import MoultLibc

/// The command that was built with these tests.
package enum BuiltMoult {
    package static func path() throws -> String {
        // The built command is next to the program of the tests.
        let own = try Files.target(ofLink: "/proc/self/exe") ?? ""
        for directory in [Files.directory(of: own), Files.directory(of: CommandLine.arguments[0])] {
            var up = directory
            for _ in 0..<4 {
                let candidate = "\(up)/moult"
                if let facts = try Files.factsThroughLinks(candidate), facts.kind == .file { return candidate }
                up = Files.directory(of: up)
            }
        }
        let fromArguments = CommandLine.arguments.first { $0.contains(".xctest") }.map(Files.directory(of:))
        if let directory = fromArguments { return "\(directory)/moult" }
        throw MoultError(.system, what: "the built command was not found", why: "looked beside \(own)")
    }

    /// The directory of the built command, which also contains the tests.
    package static func directory() throws -> String { Files.directory(of: try path()) }

    package static func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Shell.Ended {
        try run(arguments, environment: environment)
    }

    /// Runs a command, in this process if that is possible.
    package static func run(_ arguments: [String], in directory: String = "/", environment: [String: String] = [:])
        throws
        -> Shell.Ended
    {
        if environment.isEmpty, InProcess.accepts(arguments), let ended = try InProcess.run(arguments, in: directory) {
            return ended
        }
        return try Shell.run([path()] + arguments, in: directory, environment: environment)
    }

    /// Runs a command that must succeed, in this process if that is possible.
    @discardableResult
    package static func must(_ arguments: [String], in directory: String = "/") throws -> String {
        let ended = try run(arguments, in: directory)
        guard ended.status == 0 else {
            throw MoultError(
                .system, what: "moult \(arguments.joined(separator: " ")) ended with \(ended.status)", why: ended.errors
            )
        }
        return ended.output
    }
}
