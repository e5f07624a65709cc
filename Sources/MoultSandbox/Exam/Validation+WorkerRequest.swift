internal import MoultBasics
internal import MoultFiles

extension Validation: WorkerRequest {
    static let word = Validator.word

    func protection(scratch: String) throws -> Guard {
        let size = try Files.factsThroughLinks(path)?.size ?? 0
        return Guard(
            reading: .only([path] + (old.map { [$0] } ?? [])), writing: [scratch] + (isWritable ? [path] : []),
            limits: .init(
                memory: Validator.memory,
                // What SQLite does not stop by itself.
                processor: deadline + 5,
                // What is sorted is put aside, and is hardly ever larger than all there is.
                fileSize: max(64 << 20, 2 * size)))
    }

    static func json(of answer: ValidationReport) -> JSON { answer.json }
    static func answer(_ fields: Fields) throws -> ValidationReport { try ValidationReport(fields) }

    var failure: String { "\(name) cannot be checked" }
    var work: String { "the check" }
    var muchRoom: String { "twice its size" }
    var advice: String { "Nothing was changed. Publish the release again from a sound file." }
}
