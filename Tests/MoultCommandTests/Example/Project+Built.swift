import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// The build products.
extension Project {
    /// Returns the paths of all pages of documentation.
    static func pages() throws -> [String] {
        try must(["git", "ls-files", "*.md"], in: root).split(separator: "\n").map(String.init)
    }

    /// The directory of the build products, which also contains this test.
    static let built = {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count)
        let text = String(decoding: path.prefix(max(0, count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return text.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
    }()

    /// The PATH of a user who has installed the build products.
    static let path = "\(built):\(getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin")"

    /// Runs a program with this PATH.
    static func run(_ arguments: [String], in directory: String, _ environment: [String: String] = [:]) throws
        -> Shell.Ended
    {
        try Shell.run(arguments, in: directory, environment: environment.merging(["PATH": path]) { mine, _ in mine })
    }

    /// A fixed home directory: SwiftPM links again if the environment differs.
    static let home = ["HOME": getenv("HOME").map { String(cString: $0) } ?? "/tmp"]

    @discardableResult
    static func must(_ arguments: [String], in directory: String, _ environment: [String: String] = [:]) throws
        -> String
    {
        let ended = try run(arguments, in: directory, environment)
        guard ended.status == 0 else {
            throw MoultError(
                .system, what: "\(arguments.joined(separator: " ")) ended with \(ended.status)",
                why: ended.output + ended.errors)
        }
        return ended.output
    }

    /// Packs the two releases of the phrasebook into `releases`.
    static func packPhrasebook(in directory: String) throws {
        for version in ["1.0.0", "2.0.0"] {
            let draft = "\(root)/manifests/replace-on-new-version/phrasebook-\(version).draft.json"
            _ = try must(["moult", "pack", draft, "-o", "releases"], in: directory)
        }
    }
}
