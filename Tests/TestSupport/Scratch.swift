import CLinux
import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite

/// A private directory of a test, which is removed after the test.
package final class Scratch: Sendable {
    package let path: String

    /// The directory for the files of tests: `MOULT_SCRATCH`, or else `/tmp`.
    private static let root = getenv("MOULT_SCRATCH").map { String(cString: $0) } ?? "/tmp"

    package init(in directory: String = root) throws {
        var template = Array("\(directory)/moult-test-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else {
            throw Errno(moult_errno()).error("cannot create a scratch directory")
        }
        path = String(cString: made)
    }

    deinit {
        // A failure does not matter, because the system cleans its temporary directory.
        try? Files.removeTree(path)
    }

    package func path(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file, and returns its path.
    @discardableResult
    package func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        // Without a temporary file, because some names have the maximum length.
        guard let file = fopen(path(name), "w") else { throw Errno(moult_errno()).error("cannot write \(path(name))") }
        let written = fwrite(bytes, 1, bytes.count, file)
        guard fclose(file) == 0, written == bytes.count else {
            throw Errno(moult_errno()).error("cannot write \(path(name))")
        }
        return path(name)
    }

    package func read(_ name: String) throws -> [UInt8] {
        guard let bytes = try Files.read(path(name), limit: 1 << 34) else { throw Errno(ENOENT).error(path(name)) }
        return bytes
    }

    @discardableResult
    package func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }

    package func text(_ name: String) throws -> String { String(decoding: try read(name), as: UTF8.self) }

    /// Runs a shell command in the directory and returns its exit status. Its output goes to the files `out` and `err`.
    package func run(_ command: String) -> Int32 {
        let status = system("cd '\(path)' && { \(command)\n} > out 2> err")
        return status & 0x7f == 0 ? status >> 8 & 0xff : -1
    }

    @discardableResult
    package func directory(_ name: String) throws -> String {
        try Files.ensureDirectory(path(name))
        return path(name)
    }

    /// Creates a database with these statements and returns its path.
    @discardableResult
    package func database(_ name: String, _ sql: String) throws -> String {
        let connection = try Connection(path: path(name), access: .readWriteCreate)
        try connection.execute(sql)
        try connection.close()
        return path(name)
    }
}
