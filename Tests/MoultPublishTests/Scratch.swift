import Glibc
import MoultFiles

/// A directory for one test, removed with everything in it when the test ends.
final class Scratch {
    let root: String

    init() {
        var template = Array("/tmp/moult-publish-XXXXXX".utf8CString)
        root = mkdtemp(&template).map { String(cString: $0) } ?? "/nonexistent"
    }

    deinit {
        try? Files.removeTree(root)  // Nothing to do about it but leave it to /tmp.
    }

    func path(_ name: String) -> String { "\(root)/\(name)" }

    /// Writes a file, and the directories above it.
    @discardableResult
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        var directory = root
        for part in name.split(separator: "/").dropLast() {
            directory += "/\(part)"
            try Files.ensureDirectory(directory)
        }
        try Files.replace(path(name), with: bytes)
        return path(name)
    }

    @discardableResult
    func file(_ name: String, _ text: String) throws -> String { try file(name, Array(text.utf8)) }

    func bytes(_ name: String) throws -> [UInt8] { try Files.read(path(name), limit: 1 << 30) ?? [] }
}
