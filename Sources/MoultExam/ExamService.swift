internal import Glibc
internal import MoultBasics
internal import MoultFiles
internal import MoultGuard
internal import Synchronization

/// The other side of an exam: this process, started for nothing else.
package enum ExamService {
    private static let offered = Atomic(false)

    /// Whether this program, started again with `Examiner.word`, is an examiner.
    static var isOffered: Bool { offered.load(ordering: .relaxed) }

    /// The most bytes of a question or an answer.
    static let largest = 16 << 20

    /// Takes the exam and ends the process, if that is what the words after its name ask for; else notes that they could.
    package static func offer(_ words: [String?]) {
        guard words == [Examiner.word] else { return offered.store(true, ordering: .relaxed) }
        do {
            try say(try serve().line, on: 1)
        } catch {
            // Whoever started this reads it, and there is nobody else to tell.
            try? say("\(error)\n", on: 2)
            exit(1)
        }
        exit(0)
    }

    private static func serve() throws -> JSON {
        let fields = try Fields(JSON(parsing: question(), source: "the question")) { place, why, _ in
            MoultError(.exam, what: "\(place) of the question \(why)")
        }
        let exam = try Exam(fields)
        let scratch = try fields.string("scratch")
        try confine(for: exam, scratch)
        return exam.take().json
    }

    /// What is asked lies in a file, so it is there as a whole.
    private static func question() throws -> [UInt8] {
        guard let bytes = try Files.read("/proc/self/fd/0", limit: largest) else {
            throw MoultError(.exam, what: "nothing was asked")
        }
        return bytes
    }

    private static func confine(for exam: Exam, _ scratch: String) throws {
        let facts = try Files.factsThroughLinks(exam.path)
        guard setenv("SQLITE_TMPDIR", scratch, 1) == 0 else { throw MoultError(.exam, what: "no memory") }
        var protection = Guard(
            reading: .only([exam.path] + (exam.old.map { [$0] } ?? [])), writing: [scratch],
            limits: ExamProcess.limits(for: exam, size: facts?.size ?? 0))
        if exam.isWritable { protection.writing.append(exam.path) }
        try protection.confineThisProcess()
    }

    private static func say(_ text: String, on descriptor: Int32) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw MoultError(.exam, what: "nobody listens") }
            rest = rest.dropFirst(count)
        }
    }
}
