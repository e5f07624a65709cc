internal import CLinux
internal import MoultBasics
internal import MoultLibc
internal import Synchronization

/// Waits for new, moved and removed names in a directory by listing it five times a second.
package final class DirectoryWatch: Sendable {
    private static let interval: Int32 = 200

    private let directory: String
    /// A byte in it ends `wait`.
    private let stop: Pipe
    private let seen: Mutex<[String: FileNumber]?>

    package init(_ directory: String) throws {
        self.directory = directory
        let opened = try wrapped("cannot watch \(directory)") { () throws(Errno) in
            try Syscall.open(directory, O_RDONLY | O_DIRECTORY, followsLast: true)
        }
        // Nothing was written through the descriptor, so close has nothing to report.
        MoultLibc.close(opened)
        stop = try Pipe()
        seen = Mutex(Self.names(in: directory))
    }

    /// Blocks until names have changed since the last call; returns false after `cancel`.
    package func wait() throws -> Bool {
        while true {
            let names = Self.names(in: directory)
            let isNew = seen.withLock { seen in
                defer { seen = names }
                return seen != names
            }
            var polls = [pollfd(fd: stop.output, events: Int16(POLLIN), revents: 0)]
            if poll(&polls, 1, isNew ? 0 : Self.interval) < 0, moult_errno() != EINTR {
                throw Errno(moult_errno()).error("cannot watch \(directory)")
            }
            if polls[0].revents != 0 { return false }
            if isNew { return true }
        }
    }

    /// Makes `wait` return false, in the current call or in the next one. Can be called from any thread.
    package func cancel() {
        var byte: UInt8 = 0
        // If the pipe is full, the cancellation was already sent.
        _ = MoultLibc.write(stop.input, &byte, 1)
    }

    /// Returns the names and their files; nil if the directory is gone or cannot be read, which is a change like any other.
    private static func names(in directory: String) -> [String: FileNumber]? {
        var found: [String: FileNumber] = [:]
        // A missing directory is listed as empty, so it is looked for first.
        guard let facts = try? Files.factsThroughLinks(directory), facts.kind == .directory,
            let names = try? Files.list(directory)
        else { return nil }
        for name in names {
            // A name that is gone by now is left out.
            found[name] = (try? Files.facts("\(directory)/\(name)")).flatMap { $0.map { FileNumber($0) } }
        }
        return found
    }
}
