import Glibc
import TestSupport
import Testing

/// A directory of a test's own, removed with everything in it when the test lets go.
final class Scratch {
    let directory: String

    init() throws {
        var template = Array("/tmp/moult-command-XXXXXX".utf8CString)
        let made = mkdtemp(&template)
        try #require(made != nil, "mkdtemp: errno \(errno)")
        directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { _ = system("chmod -R u+w '\(directory)'; rm -rf '\(directory)'") }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    func write(_ name: String, _ text: String) throws {
        let file = try #require(fopen(path(name), "w"))
        try #require(fputs(text, file) >= 0)
        try #require(fclose(file) == 0)
    }

    func read(_ name: String) throws -> String {
        let file = try #require(fopen(path(name), "r"))
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&block, 1, block.count, file)
            if count == 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes += block[..<count]
        }
    }

    /// Runs a shell command inside the directory, with `moult` as the command that was built and an environment in which
    /// nothing is set that changes how it writes.
    func run(_ command: String) throws -> (status: Int32, out: String, err: String) {
        try write("command", command)
        let kept = Sanitizer.environment.map { "\($0)='\($1)' " }.joined()
        let clean = "env -i \(kept)PATH=\"\(Self.built):$PATH\" HOME='\(directory)' bash command"
        let status = system("cd '\(directory)' && \(clean) > out 2> err")
        return (status & 0x7f == 0 ? status >> 8 & 0xff : -1, try read("out"), try read("err"))
    }

    /// The directory of the products, where the tests themselves are.
    static let built: String = {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count)
        let text = String(decoding: path.prefix(max(0, count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return text.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
    }()
}
