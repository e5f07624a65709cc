internal import MoultBasics

/// Decompresses one format, piece by piece.
protocol Decoder: AnyObject {
    /// Decodes from `input` into `output`. Removes the used bytes from `input`, and returns the number of bytes written.
    ///
    /// Callers repeat this until nothing more is written, even with no input left.
    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws -> Int

    /// Whether the input may end here.
    var mayEnd: Bool { get }
}

/// The memory limit of every decoder for its window and tables; content that needs more is refused.
let decoderMemoryLimit = 64 << 20

extension ArchiveRefusal {
    /// Returns the refusal for content that would need more memory than `decoderMemoryLimit`.
    static func memory(_ what: String, now: Advice) -> ArchiveRefusal {
        ArchiveRefusal(.archiveMemory, "\(what) needs more than the 64 MiB of memory that unpacking may use", now: now)
    }

    /// Returns the refusal for other bytes after the end of the compressed stream.
    static func trailingData(of format: String) -> ArchiveRefusal {
        ArchiveRefusal(.archiveGarbage, "unexpected data after the end of its \(format) stream")
    }
}

/// Passes uncompressed content through.
final class PlainDecoder: Decoder {
    let mayEnd = true

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(input.count, output.count)
        output.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
        input = UnsafeRawBufferPointer(rebasing: input[count...])
        return count
    }
}
