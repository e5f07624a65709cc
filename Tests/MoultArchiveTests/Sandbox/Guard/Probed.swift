import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport

/// A directory with files that a guarded process must not change, and a directory next to it to which the process may
/// write.
final class Probed {
    private let all: Scratch
    let world: String
    let scratch: String
    var file: String { "\(world)/file" }

    init() throws {
        all = try Scratch()
        world = try all.directory("world")
        scratch = try all.directory("scratch")
        try Files.replace(file, with: Array("as it was\n".utf8))
        try Files.ensureDirectory("\(world)/empty")
    }

    /// How the probe is confined.
    enum Way: String, CaseIterable {
        /// The parent confines the probe before the probe starts.
        case spawned = "no"
        /// The probe confines itself.
        case alone
        /// The probe confines itself, and may not read anything outside its directory.
        case reads
    }

    /// Runs the probe, and returns the kernel's answer to each call.
    func ask(_ calls: [String], _ way: Way?) throws -> [String] {
        let probe = "\(Files.directory(of: try BuiltMoult.path()))/GuardProbe"
        let words = [probe, way?.rawValue ?? "no", scratch, file] + calls
        let result = try way == .spawned ? Guard(.program(), writing: [scratch]).run(words) : Subprocess.run(words)
        guard result.succeeded else { throw MoultError(.system, what: "the probe failed", why: result.complaint) }
        return result.text.split(separator: "\n").map { String($0) }
    }

    func ask(_ call: String, _ way: Way?) throws -> String { try ask([call], way).joined() }
}
