import MoultFiles
import TestSupport

extension Scratch {
    /// Writes a file, and the directories above it.
    @discardableResult
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        for (index, character) in name.enumerated() where character == "/" { try directory(String(name.prefix(index))) }
        try Files.replace(path(name), with: bytes)
        return path(name)
    }

    @discardableResult
    func file(_ name: String, _ text: String) throws -> String { try file(name, Array(text.utf8)) }

    func bytes(_ name: String) throws -> [UInt8] { try Files.read(path(name), limit: 1 << 30) ?? [] }

    /// Creates two databases that begin with the same statements.
    func pair(_ both: String, old: String = "", new: String = "") throws -> (old: String, new: String) {
        (try database("old.db", both + ";" + old), try database("new.db", both + ";" + new))
    }
}
