import MoultFiles
import TestSupport

/// The built command, next to the tests.
enum BuiltCommand {
    static let path: String = {
        // Without `/proc`, none of these tests can run: the path of the command cannot be determined.
        let own = (try? Files.target(ofLink: "/proc/self/exe")) ?? ""
        return Files.directory(of: own) + "/moult"
    }()

    static func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Shell.Ended {
        try Shell.run([path] + arguments, environment: environment)
    }
}
