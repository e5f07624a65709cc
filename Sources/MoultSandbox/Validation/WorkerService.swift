internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultRows
internal import MoultSQLite
internal import Synchronization

/// The service side of a validation: a process started only for this purpose.
package enum WorkerService {
    private static let offered = Atomic(false)

    /// Whether this program, started again with `Validator.verb`, is a validator.
    static var isOffered: Bool { offered.load(ordering: .relaxed) }

    /// The maximum size of a request or a reply in bytes.
    static let largest = 16 << 20

    /// Answers a request and ends the process if the arguments say so; otherwise records that this program can answer requests.
    package static func offer(_ words: [String?]) {
        do {
            switch words {
            case [Validation.verb]: try serve(Validation.self)
            case [MigrationRun.verb]: try serve(MigrationRun.self)
            case [SalvageRun.verb]: try serve(SalvageRun.self)
            case [ArchiveRequest.verb]: try ArchiveService.serve()
            default: return offered.store(true, ordering: .relaxed)
            }
        } catch {
            // Only the parent process can read this text.
            let text = Array("\(error)\n".utf8)
            _ = MoultLibc.write(2, text, text.count)
            exit(1)
        }
        exit(0)
    }

    /// The line sent before the reply, and before the database is opened.
    static let ready = Array("ready".utf8)

    private static func serve<Asked: WorkerRequest>(_: Asked.Type) throws {
        var parent = ParentChannel(longest: largest)
        guard let json = try parent.next() else { throw MoultError(.validation, what: "the request is missing") }
        let fields = try Fields(json) { place, why, _ in
            MoultError(.validation, what: "\(place) of the request \(why)")
        }
        let request = try Asked(fields)
        let scratch = try fields.string("scratch")
        guard setenv("SQLITE_TMPDIR", scratch, 1) == 0 else { throw MoultError(.validation, what: "out of memory") }
        try request.protection(scratch: scratch).confineThisProcess()
        // Deadlines count processor time, because on a busy machine this process gets only part of a processor.
        DeadlineClock.countProcessorTime()
        try (ready + [UInt8(ascii: "\n")]).withUnsafeBytes { try ParentChannel.send($0) }
        try ParentChannel.send(Asked.json(of: request.perform()))
    }
}
