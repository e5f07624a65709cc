import MoultBasics
import MoultFiles
import TestSupport

/// The changes that a command made in a directory, in order, as the kernel saw them.
struct Recording {
    /// The directory before the command, and the operations of the command.
    let before: Disk
    let operations: [FileOperation]
    /// The inodes of files.
    let inodes: [UInt64: Disk.ID]

    private static let calls = [
        "open", "openat", "openat2", "creat", "write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile",
        "copy_file_range",
        "lseek", "truncate", "ftruncate", "fallocate", "rename", "renameat", "renameat2", "link", "linkat", "symlink",
        "symlinkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "fsync", "fdatasync", "syncfs", "sync", "msync",
    ]

    /// Runs a command, which must succeed, and records the changes that it makes in the directory.
    init(of command: [String], in directory: String, scratch: Scratch) throws {
        let log = scratch.path("trace")
        var inodes: [UInt64: Disk.ID] = [:]
        before = try Disk(reading: directory, &inodes)
        try Shell.must(
            [
                "strace", "-f", "--seccomp-bpf", "-qq", "-a", "1", "-y", "-xx", "-s", "16777216", "-o", log, "-e",
                "trace=\(Self.calls.joined(separator: ","))",
            ] + command)
        let text = String(decoding: try Files.read(log, limit: 1 << 30) ?? [], as: UTF8.self)
        var translation = Translation(directory, before)
        for line in Self.lines(of: text) {
            guard let call = try TracedCall(line) else { continue }
            try translation.add(call)
        }
        operations = translation.operations
        // Throws an error if the result of the model differs from that of the kernel, because the model has then missed
        // or misunderstood an operation.
        let end = try Disk(reading: directory, numbering: translation.disk.live, &inodes)
        self.inodes = inodes
        let differences = translation.disk.live.differences(to: end)
        guard differences.isEmpty else {
            throw Disk.wrong("the disk differs: \(differences.joined(separator: "; "))")
        }
    }

    /// Returns the lines of a trace; the two lines of a call that another thread interrupted are joined.
    private static func lines(of text: String) -> [String] {
        var begun: [Substring: Substring] = [:]
        var found: [String] = []
        for line in text.split(separator: "\n") {
            let process = line.prefix { $0 != " " }
            let rest = line.dropFirst(process.count).drop { $0 == " " }
            if rest.hasSuffix("<unfinished ...>") {
                begun[process] = rest.dropLast("<unfinished ...>".count).trimmed
            } else if rest.hasPrefix("<... "), let end = rest.firstIndex(of: ">"), let start = begun[process] {
                begun[process] = nil
                let more = rest[rest.index(after: end)...]
                found.append(String(start) + more.drop { $0 == " " && start.hasSuffix(",") == false })
            } else {
                found.append(String(rest))
            }
        }
        return found
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = self
        while text.last == " " { text.removeLast() }
        return text
    }
}
