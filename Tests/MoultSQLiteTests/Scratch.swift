import Glibc
import MoultSQLite

/// A directory for one test, removed with everything in it when the test ends.
final class Scratch {
    let root: String

    init() {
        var template = Array("/tmp/moult-sqlite-XXXXXX".utf8CString)
        root = mkdtemp(&template).map { String(cString: $0) } ?? "/nonexistent"
    }

    deinit {
        _ = try? run("rm", "-rf", root)  // Nothing to do about it but leave it to /tmp.
    }

    func path(_ name: String) -> String { "\(root)/\(name)" }

    /// What is in the directory, sorted.
    func names(in directory: String = "") -> [String] {
        guard let stream = opendir(directory.isEmpty ? root : path(directory)) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}

extension Scratch {
    /// Makes a database with these statements and returns its path.
    @discardableResult
    func database(_ name: String, _ sql: String) throws -> String {
        let connection = try Connection(path: path(name), access: .readWriteCreate)
        try connection.execute(sql)
        try connection.close()
        return path(name)
    }

    @discardableResult
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let descriptor = open(path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw ScratchFailed(path: path(name)) }
        defer { close(descriptor) }
        guard bytes.withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) == bytes.count else {
            throw ScratchFailed(path: path(name))
        }
        return path(name)
    }

    func bytes(_ name: String) throws -> [UInt8] {
        let descriptor = open(path(name), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ScratchFailed(path: path(name)) }
        defer { close(descriptor) }
        var status = stat()
        fstat(descriptor, &status)
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        guard read(descriptor, &bytes, bytes.count) == bytes.count else { throw ScratchFailed(path: path(name)) }
        return bytes
    }

    /// Overwrites bytes in the middle of a file.
    func damage(_ name: String, at offset: Int, with bytes: [UInt8]) throws {
        var all = try self.bytes(name)
        all.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        try file(name, all)
    }
}

struct ScratchFailed: Error {
    var path: String
}
