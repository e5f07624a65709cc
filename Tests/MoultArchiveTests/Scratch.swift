import Glibc
import MoultBasics
import Testing

/// A directory of a test's own, removed with everything in it when the test lets go.
final class Scratch {
    let directory: String

    init() throws {
        var template = Array("/tmp/moult-archive-XXXXXX".utf8CString)
        let made = mkdtemp(&template)
        try #require(made != nil, "mkdtemp: errno \(errno)")
        directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { _ = system("rm -rf '\(directory)'") }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    /// Writes a file and returns its path.
    @discardableResult func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = try #require(fopen(path(name), "w"))
        let written = fwrite(bytes, 1, bytes.count, file)
        try #require(written == bytes.count)
        try #require(fclose(file) == 0)
        return path(name)
    }

    func read(_ name: String) throws -> [UInt8] {
        let file = try #require(fopen(path(name), "r"))
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&block, 1, block.count, file)
            if count == 0 { return bytes }
            bytes += block[..<count]
        }
    }

    /// Runs a shell command inside the directory; its exit status.
    func run(_ command: String) -> Int32 {
        let status = system("cd '\(directory)' && { \(command)\n} >out 2>err")
        return status & 0x7f == 0 ? status >> 8 & 0xff : -1
    }
}
