import MoultFiles
import TestSupport

/// The command as it was built, next to the tests.
enum BuiltCommand {
    static let path: String = {
        // Without `/proc` no test of this kind can run anyway, and then the error says that moult is not found.
        let own = (try? Files.target(ofLink: "/proc/self/exe")) ?? ""
        return Files.directory(of: own) + "/moult"
    }()

    static func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Shell.Ended {
        try Shell.run([path] + arguments, environment: environment)
    }
}
