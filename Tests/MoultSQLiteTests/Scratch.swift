import Glibc

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
