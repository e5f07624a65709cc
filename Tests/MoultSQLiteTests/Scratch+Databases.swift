import MoultFiles
import MoultLibc
import TestSupport

extension Scratch {
    @discardableResult
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        try Files.writeNew(bytes, to: path(name))
        return path(name)
    }

    /// Returns the entries of the directory, sorted.
    func names(in directory: String = ".") throws -> [String] { try Files.list(path(directory)) }

    func size(_ name: String) throws -> Int? { try Files.facts(path(name))?.size }

    /// Overwrites bytes in the middle of a file.
    func damage(_ name: String, at offset: Int, with bytes: [UInt8]) throws {
        let file = try Descriptor(path(name), .write)
        try bytes.withUnsafeBytes { try file.write($0, at: offset) }
        try file.close()
    }
}
