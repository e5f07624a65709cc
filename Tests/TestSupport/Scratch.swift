import CLinux
import Glibc
import MoultBasics
import MoultFiles

/// A directory of a test's own, gone when the test has ended.
package final class Scratch: Sendable {
    package let path: String

    package init(in directory: String = "/tmp") throws {
        var template = Array("\(directory)/moult-test-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Errno(moult_errno()).error("cannot make a scratch directory") }
        path = String(cString: made)
    }

    deinit {
        // Nothing depends on it, and the system clears its temporary directory anyway.
        try? Files.removeTree(path)
    }

    package func path(_ name: String) -> String { "\(path)/\(name)" }

    @discardableResult
    package func directory(_ name: String) throws -> String {
        try Files.ensureDirectory(path(name))
        return path(name)
    }
}
