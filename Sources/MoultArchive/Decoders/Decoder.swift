/// Undoes one kind of compression, piece by piece.
protocol Decoder: AnyObject {
    /// Decodes from `input`, from which it takes what it used, into `output`; returns how much it wrote there.
    ///
    /// It is called until it writes nothing more, also with no input left.
    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws -> Int

    /// Whether the input may end here.
    var mayEnd: Bool { get }
}

/// What any decoder may use for its window and tables; what needs more is refused.
let decoderMemoryLimit = 64 << 20

extension Refusal {
    /// The decoder would need more memory than `decoderMemoryLimit`.
    static func memory(_ what: String, now: String) -> Refusal {
        Refusal(.archiveMemory, "\(what) needs more than the 64 MiB of memory that unpacking may use", now: now)
    }

    /// What stands where the compressed stream should have ended or gone on.
    static func behindEnd(of format: String, next byte: UInt8) -> Refusal {
        if byte == 0 {
            return Refusal(
                .archiveGarbage,
                "it is padded with NUL bytes behind its \(format) stream, as bsdtar does when it writes to a pipe",
                now: "Pack it again with “bsdtar -f FILE”, or let \(format) compress what tar writes.")
        }
        return Refusal(.archiveGarbage, "there are other bytes behind the end of its \(format) stream")
    }
}
