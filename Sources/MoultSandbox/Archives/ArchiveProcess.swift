internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// A file that several processes and threads read.
final class OpenFile: Sendable {
    let descriptor: Descriptor
    init(_ path: String) throws { descriptor = try Descriptor(path, .read) }
}

/// A process that reads an untrusted archive. Nothing that the process sends is trusted, because the archive may have taken
/// over the process. Deinitialization kills the process. Used by one thread at a time.
final class ArchiveProcess: @unchecked Sendable {
    // Sendable because one thread at a time uses it: only `ConfinedFrames.idle` hands it over.

    /// The program does not support such requests: it is an older moult, or a different program. It has not read any byte of
    /// the archive.
    struct NotSupported: Error {}

    /// The settings shared by all processes that read the same archive.
    struct Settings: Sendable {
        let path: String
        let program: String
        /// The maximum number of seconds without a message from the process.
        let patience: Int
        /// Polled several times a second while waiting; may throw.
        let stop: @Sendable () throws -> Void
    }

    /// The maximum length of a message: even the layout of a bundle with the maximum number of members is shorter.
    private static let longestLine = 4 << 20

    private let settings: Settings
    private let request: ArchiveRequest
    private let child: Subprocess
    private let memory: Descriptor
    private var lines = MessageLines(longest: ArchiveProcess.longestLine)
    private var isReady = false

    /// `files` contains the archive and, for a patch, its base file.
    init(_ settings: Settings, _ request: ArchiveRequest, _ files: [OpenFile]) throws {
        (self.settings, self.request) = (settings, request)
        memory = try .inMemory(size: request.memory)
        // The exit status shows what happened. Printing a backtrace takes seconds, and hides the signal.
        var command = Subprocess.Command(
            [settings.program, ArchiveRequest.verb], environment: ["SWIFT_BACKTRACE": "enable=no"])
        command.endsWithParent = true
        command.files = [memory.number] + files.map { $0.descriptor.number }
        child = try Subprocess(command, input: .pipe)
        send(request.json)
    }

    func send(_ message: JSON) { child.send(message) }

    /// Waits until the process is sandboxed and ready to read.
    func waitUntilReady() throws {
        while !isReady {
            let message = try message()
            guard try message.optionalBool("ready") == true else { throw invalid("the process was not ready") }
            isReady = true
        }
    }

    /// Returns the next message; throws if it is a refusal.
    func next() throws -> Fields {
        try waitUntilReady()
        let message = try message()
        guard let refusal = try message.optionalObject("refused") else { return message }
        throw MoultError(
            refusalOf: settings.path, code: try refusal.count("code"), why: try refusal.string("why"),
            now: try refusal.optionalString("now"))
    }

    private func message() throws -> Fields {
        let heard = ContinuousClock.now
        var asked = heard
        func stopInTime() throws {
            let now = ContinuousClock.now
            if now > asked + .milliseconds(100) {
                asked = now
                try settings.stop()
            }
            if now > heard + .seconds(settings.patience) {
                throw failed("the process that reads the archive did not respond for \(settings.patience) s")
            }
        }
        while true {
            let line: [UInt8]?
            do { line = try lines.next() } catch { throw invalid("the reply is too long") }
            if let line {
                let json: JSON
                do { json = try JSON(parsing: line, source: "its reply") } catch {
                    throw invalid("the reply is not JSON")
                }
                return try Fields(json) { [self] place, why, _ in invalid("\(place) \(why)") }
            }
            guard let block = try child.read(patience: settings.patience + 60, stop: stopInTime) else {
                throw try end()
            }
            lines.add(block)
        }
    }

    /// Copies data from the shared memory, which the process could change at any time, into this process's own memory.
    func copy(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = try memory.read(into: rest, at: offset + done)
            guard count > 0 else { throw invalid("the content is too short") }
            done += count
        }
    }

    /// Returns the error for an invalid reply.
    func invalid(_ why: String) -> MoultError {
        failed("the process that reads the archive sent an invalid reply: \(String(why.prefix(200)))")
    }

    private func failed(_ why: String) -> MoultError {
        MoultError(
            .archiveProcess, what: "cannot unpack \(settings.path)", why: why,
            now: "Nothing was changed. Download the archive again, or pack it again.")
    }

    /// Returns the error for an unexpected end.
    private func end() throws -> any Error {
        let end = try child.finish()
        switch end.ending {
        // The command's reply to an unknown verb.
        case .exited(64) where !isReady: return NotSupported()
        // A signal to the whole process group, as sent by Ctrl-C, ends this process too.
        case .signalled(let signal) where [SIGINT, SIGTERM, SIGHUP].contains(signal):
            try settings.stop()
            return MoultError(
                .archiveProcess, .busy, what: "cannot unpack \(settings.path)",
                why: "the process that reads the archive was killed by signal \(signal)", now: "Try again.")
        case .signalled(let signal):
            return failed(
                CrashReason(signal: signal).reason(
                    "the process that reads the archive",
                    excessiveTime: "more than \(request.limits.processor ?? 0) s of CPU time",
                    diskLimit: "it is allowed"))
        case .exited, .timedOut:
            return failed("the process that reads the archive exited too early: \(String(end.complaint.prefix(500)))")
        }
    }
}
