internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import Synchronization

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
    init(_ settings: Settings, _ request: ArchiveRequest, _ files: [SharedFile]) throws {
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
        guard try memory.fill(buffer, at: offset) == buffer.count else { throw invalid("the content is too short") }
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
                crashReason(
                    signal, "the process that reads the archive",
                    excessiveTime: "more than \(request.limits.processor ?? 0) s of CPU time",
                    diskLimit: "it is allowed"))
        case .exited, .timedOut:
            return failed("the process that reads the archive exited too early: \(String(end.complaint.prefix(500)))")
        }
    }
}

/// Frames decoded by sandboxed processes, one for each thread that requests them.
final class ConfinedFrames: FrameSource {
    let contentSizes: [Int]
    let maxThreads: Int
    private let start: @Sendable () throws -> ArchiveProcess
    private let idle: Mutex<[ArchiveProcess]>

    /// `first` is a process that is already running; it is used before others are started.
    init(
        contentSizes: [Int], maxThreads: Int, first: ArchiveProcess,
        start: @escaping @Sendable () throws -> ArchiveProcess
    ) {
        (self.contentSizes, self.maxThreads, self.start) = (contentSizes, maxThreads, start)
        idle = Mutex([first])
    }

    func decoder(into memory: UnsafeMutableRawBufferPointer?) throws -> (Int) throws -> UnsafeRawBufferPointer {
        let process = try idle.withLock { $0.popLast() } ?? start()
        let buffer = memory.map { OwnBuffer(borrowing: $0) } ?? OwnBuffer(size: contentSizes.max() ?? 0)
        return { [contentSizes] index in
            process.send(.record(["frame": index]))
            guard try process.next().count("bytes") == contentSizes[index] else {
                throw process.invalid("frame \(index) has the wrong size")
            }
            let content = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<contentSizes[index]])
            try process.copy(into: content, at: 0)
            return UnsafeRawBufferPointer(content)
        }
    }
}

/// Memory that no other process can access.
final class OwnBuffer {
    let bytes: UnsafeMutableRawBufferPointer
    private let isOwned: Bool

    init(size: Int) { (bytes, isOwned) = (.allocate(byteCount: max(1, size), alignment: 4096), true) }
    init(borrowing bytes: UnsafeMutableRawBufferPointer) { (self.bytes, isOwned) = (bytes, false) }

    deinit { if isOwned { bytes.deallocate() } }
}

/// The request to a process that reads an archive, sent as its first line. The process also gets open files: the shared memory,
/// the archive and, for a patch, its base file.
struct ArchiveRequest: Sendable {
    /// The first argument that makes a program read archives. Its number changes with the message format.
    static let verb = "unpack-1"

    enum Task: Sendable {
        /// All members, with declared sizes, of an archive whose format follows from its name.
        case members([String: Int], archive: String)
        /// The names and sizes of the members of a bundle that `moult pack` made as .tar.zst.
        case list
        /// The pieces of a file produced by a patch, one at a time.
        case patch(resultSize: Int)
    }

    let task: Task
    /// The size of the shared memory that transfers content, in bytes.
    let memory: Int
    /// The size of a patch's base file in bytes; 0 without one.
    var baseSize = 0

    /// The content of an archive is transferred in parts of this size; the parts of the memory are used in turn.
    static let partSize = 256 << 10
    static let parts = 8

    /// The memory that a process may allocate for an archive of another program, because libarchive allocates what the archive asks
    /// for. With the program itself and the shared memory, it needs at most 64 MB.
    private static let allocated = 45 << 20

    /// Limits far above what honest archives need. A patch maps its base file up to twice, with the end rounded up.
    var limits: Guard.Limits {
        var isForeign = false
        if case .members = task { isForeign = true }
        let content =
            switch task {
            // A hostile manifest may declare any sizes.
            case .members(let sizes, _): sizes.values.reduce(0) { min($0, 1 << 60) + min($1, 1 << 60) }
            case .list: 1 << 40
            case .patch(let size): size + baseSize
            }
        return Guard.Limits(
            memory: Validator.memory.map { $0 / 2 + 3 * baseSize + memory },
            data: isForeign ? Validator.memory.map { _ in Self.allocated } : nil, processor: 60 + content / 500_000,
            // The process writes only to memory and pipes, which this limit does not affect.
            fileSize: 0)
    }
}

extension ArchiveRequest {
    var json: JSON {
        let task: JSON =
            switch task {
            case .members(let sizes, let archive):
                .record([
                    "archive": archive,
                    "members": JSON.object(sizes.sorted { $0.key < $1.key }.map { .init($0.key, .size($0.value)) }),
                ])
            case .list: .record([:])
            case .patch(let size): .record(["result": size])
            }
        return task.setting("memory", to: .size(memory)).setting("base", to: .size(baseSize))
    }

    init(_ fields: Fields) throws {
        memory = try fields.count("memory")
        baseSize = try fields.count("base")
        if let archive = try fields.optionalString("archive") {
            let members = fields.json("members")?.members ?? []
            task = .members(
                Dictionary(members.map { ($0.name, Int($0.value.integer ?? 0)) }) { first, _ in first },
                archive: archive)
        } else if let size = try fields.optionalCount("result") {
            task = .patch(resultSize: size)
        } else {
            task = .list
        }
    }
}
