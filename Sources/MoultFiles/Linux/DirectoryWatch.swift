internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// Waits for new, moved and removed names in a directory, reported by the kernel (inotify) without polling.
package final class DirectoryWatch: Sendable {
    private let directory: String
    private let events: Int32
    /// A byte in it ends `wait`.
    private let stop: Pipe

    package init(_ directory: String) throws {
        self.directory = directory
        stop = try Pipe()
        events = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard events >= 0 else { throw Errno(moult_errno()).error("cannot watch \(directory)") }
        let kinds = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
        guard inotify_add_watch(events, directory, UInt32(kinds)) >= 0 else {
            throw Errno(moult_errno()).error("cannot watch \(directory)")
        }
    }

    // Nothing was written through the descriptor, so close has nothing to report.
    deinit { MoultLibc.close(events) }

    /// Blocks until entries of the directory have been created, moved or removed since the last call; returns false after
    /// `cancel`.
    package func wait() throws -> Bool {
        while true {
            var polls = [events, stop.output].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            if poll(&polls, nfds_t(polls.count), -1) < 0 {
                if moult_errno() == EINTR { continue }
                throw Errno(moult_errno()).error("cannot watch \(directory)")
            }
            if polls[1].revents != 0 { return false }
            if polls[0].revents != 0 {
                try drain()
                return true
            }
        }
    }

    /// Makes `wait` return false, in the current call or in the next one. Can be called from any thread.
    package func cancel() {
        var byte: UInt8 = 0
        // If the pipe is full, the cancellation was already sent.
        _ = MoultLibc.write(stop.input, &byte, 1)
    }

    /// Discards the events without reading the names: the caller lists the directory itself, so an overflow of the queue loses
    /// nothing.
    private func drain() throws {
        try withUnsafeTemporaryAllocation(byteCount: 1 << 14, alignment: 8) { buffer in
            while true {
                let count = MoultLibc.read(events, buffer.baseAddress, buffer.count)
                if count >= 0 || moult_errno() == EINTR { continue }
                if moult_errno() == EAGAIN { return }
                throw Errno(moult_errno()).error("cannot watch \(directory)")
            }
        }
    }
}
