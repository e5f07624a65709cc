internal import CLinux
internal import MoultLibc
internal import Synchronization

/// The standard output and error streams. Results are buffered and written at once, and never mix with a progress line.
///
/// Sendable without `@unchecked`: all mutable state is in a mutex.
final class Console: Sendable {
    let out: Terminal
    let err: Terminal
    private let environment: Environment
    private let outDescriptor: Int32
    private let errDescriptor: Int32
    private let state = Mutex(State())

    private struct State {
        var pending: [UInt8] = []
        /// True if the reader has gone away (`| head -1`) or a write has failed; all further output is then dropped.
        var isClosed = false
        /// The errno of the failed write; a closed pipe is not a failure.
        var failure: Int32?
        var hasProgressLine = false
        /// Whether the output is ending. If so, no progress line is drawn.
        var isEnding = false
    }

    init(environment: Environment, out: Int32 = STDOUT_FILENO, err: Int32 = STDERR_FILENO) {
        self.out = Terminal(descriptor: out, environment: environment)
        self.err = Terminal(descriptor: err, environment: environment)
        self.environment = environment
        outDescriptor = out
        errDescriptor = err
    }

    /// The current capabilities of stderr.
    var errNow: Terminal { Terminal(descriptor: errDescriptor, environment: environment) }

    func write(_ text: String) { write(Array(text.utf8)) }

    /// Appends bytes, which need not be text, in the same way.
    func write(_ bytes: [UInt8]) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.pending += bytes
            if state.pending.count >= 1 << 16 { flush(&state) }
        }
    }

    func flush() { state.withLock { flush(&$0) } }

    /// Writes all remaining output; returns the errno of a failed write, if any.
    func finish() -> Int32? {
        state.withLock { state in
            clearProgress(&state)
            state.isEnding = true
            flush(&state)
            return state.failure
        }
    }

    func diagnose(_ text: String) {
        state.withLock { state in
            clearProgress(&state)
            _ = Self.write(Array(text.utf8), to: errDescriptor)
        }
    }

    /// Draws the progress line over the previous one. Only for terminals that can redraw a line.
    func showProgress(_ line: String) {
        state.withLock { state in
            guard !state.isEnding else { return }
            _ = Self.write(Array("\r\(line)\u{1B}[K".utf8), to: errDescriptor)
            state.hasProgressLine = true
        }
    }

    func clearProgress() { state.withLock { clearProgress(&$0) } }

    /// Removes the progress line, and draws none from now on.
    func endProgress() {
        state.withLock { state in
            clearProgress(&state)
            state.isEnding = true
        }
    }

    private func clearProgress(_ state: inout State) {
        guard state.hasProgressLine else { return }
        _ = Self.write(Array("\r\u{1B}[K".utf8), to: errDescriptor)
        state.hasProgressLine = false
    }

    private func flush(_ state: inout State) {
        guard !state.pending.isEmpty else { return }
        if out.isTerminal { clearProgress(&state) }
        let failure = Self.write(state.pending, to: outDescriptor)
        state.pending.removeAll(keepingCapacity: true)
        guard let failure else { return }
        state.isClosed = true
        if failure != EPIPE { state.failure = failure }
    }

    /// Writes all bytes; returns errno on failure.
    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
        bytes.withUnsafeBytes { buffer in
            var done = 0
            while done < buffer.count {
                let count = MoultLibc.write(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done)
                if count >= 0 {
                    done += count
                    continue
                }
                switch moult_errno() {
                case EINTR: continue
                case EAGAIN: waitUntilWritable(descriptor)
                case let failure: return failure
                }
            }
            return nil
        }
    }
    /// Waits until the descriptor is writable, because the caller may have made it non-blocking.
    private static func waitUntilWritable(_ descriptor: Int32) {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        // The result of poll does not matter, because the next write reports the error.
        _ = poll(&request, 1, 1000)
    }
}

/// Makes the three standard descriptors safe to use.
enum StandardDescriptors {
    /// Opens standard descriptors that the caller has closed; otherwise a database could get descriptor 1 and be overwritten by
    /// results. Also makes a write to a closed pipe fail instead of killing the process.
    static func secure() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest free number is that of the missing descriptor. Standard output is opened read-only, so that any
            // attempt to write results fails, as it should. If opening fails, writes fail anyway.
            _ = moult_openat(AT_FDCWD, "/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY, 0)
        }
        // Fails only for a signal that does not exist.
        _ = signal(SIGPIPE, SIG_IGN)
    }
}

/// Corrects the signal dispositions that this process inherited from its caller.
enum InheritedSignals {
    /// Resets SIGCHLD and ignores SIGXFSZ. If the caller ignores SIGCHLD (`trap '' CHLD`), no child can be waited for. A file
    /// that exceeds the shell's limit (`ulimit -f`) would end the process with SIGXFSZ; if this signal is ignored, the write
    /// fails, and the command cleans up.
    static func reset() {
        // Fails only for a signal that does not exist.
        _ = (signal(SIGCHLD, SIG_DFL), signal(SIGXFSZ, SIG_IGN))
    }
}
