internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import Synchronization

/// The other side of an exam: this process, started for nothing else.
package enum WorkerService {
    private static let offered = Atomic(false)

    /// Whether this program, started again with `Validator.word`, is an examiner.
    static var isOffered: Bool { offered.load(ordering: .relaxed) }

    /// The most bytes of a question or an answer.
    static let largest = 16 << 20

    /// Answers a question and ends the process, if that is what the words after its name ask for; else notes that they
    /// could.
    package static func offer(_ words: [String?]) {
        do {
            switch words {
            case [Validation.word]: try serve(Validation.self)
            case [MigrationRun.word]: try serve(MigrationRun.self)
            // Of libraries that expect the answer alone.
            case ["examine-1"]: try serve(Validation.self, tellsReady: false)
            case ["try-1"]: try serve(MigrationRun.self, tellsReady: false)
            case [ArchiveQuestion.word]: try ArchiveService.serve()
            default: return offered.store(true, ordering: .relaxed)
            }
        } catch {
            // The parent reads it, and no one else could.
            try? say("\(error)\n", on: 2)
            exit(1)
        }
        exit(0)
    }

    /// The message before the answer, and before the database is opened.
    static let ready = Array("ready\n".utf8)

    private static func serve<Asked: WorkerRequest>(_: Asked.Type, tellsReady: Bool = true) throws {
        let fields = try Fields(JSON(parsing: asked(), source: "the question")) { place, why, _ in
            MoultError(.exam, what: "\(place) of the question \(why)")
        }
        let question = try Asked(fields)
        let scratch = try fields.string("scratch")
        guard setenv("SQLITE_TMPDIR", scratch, 1) == 0 else { throw MoultError(.exam, what: "no memory") }
        try question.protection(scratch: scratch).confineThisProcess()
        // A busy machine gives it a part of a processor only.
        DeadlineClock.countProcessorTime()
        if tellsReady { try say(String(decoding: ready, as: UTF8.self), on: 1) }
        try say(Asked.json(of: question.take()).line, on: 1)
    }

    /// The request is in a file, so it is complete.
    private static func asked() throws -> [UInt8] {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count <= largest {
            let count = pread(STDIN_FILENO, &block, block.count, off_t(bytes.count))
            guard count >= 0 else {
                throw MoultError(.exam, what: "the question cannot be read", why: String(cString: strerror(errno)))
            }
            if count == 0 { return bytes }
            bytes += block[..<count]
        }
        throw MoultError(.exam, what: "the question is longer than \(largest) bytes")
    }

    static func say(_ text: String, on descriptor: Int32) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { MoultLibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw MoultError(.exam, what: "the parent closed the pipe") }
            rest = rest.dropFirst(count)
        }
    }
}
