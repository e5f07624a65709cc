internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import Synchronization

/// The file produced by a patch, and its digest. Several threads write the pieces in any order; one thread at a time passes
/// them to the digest in file order.
final class PatchedFile: Sendable {
    private struct State {
        /// The pieces written but not yet digested.
        var written: [Int: Range<Int>] = [:]
        var next = 0
        var isDigesting = false
    }

    private let file: Descriptor
    private let state = Mutex(State())
    /// Used only by the thread that has set `isDigesting`.
    private let digest = GrowingDigest()

    init(_ file: consuming Descriptor) { self.file = file }

    func add(_ bytes: UnsafeRawBufferPointer, piece: Int, at offset: Int) throws {
        try file.write(bytes, at: offset)
        // Starts writeback immediately, so that the sync at the end is short.
        try file.startWriteback(at: offset, count: bytes.count)
        state.withLock { $0.written[piece] = offset..<offset + bytes.count }
        while let (number, range) = next() {
            if number == piece {
                try digest.update(bytes)
            } else {
                // Another thread wrote this piece and has moved on; the pages of the piece are still in memory.
                try MappedFile(file, range).withBytes { try digest.update($0) }
            }
            state.withLock { $0.isDigesting = false }
        }
    }

    /// Returns the next piece for this thread to digest; nil if another thread has it, or it does not exist yet.
    private func next() -> (Int, Range<Int>)? {
        state.withLock { state in
            guard !state.isDigesting, let range = state.written.removeValue(forKey: state.next) else { return nil }
            defer { state.next += 1 }
            state.isDigesting = true
            return (state.next, range)
        }
    }

    func finish() throws -> String { try digest.finish() }
}

/// The error for a patch or a base file that does not match its digest; the release is then installed without that file.
package struct PatchFault: Error {
    /// The names of the patches, or the generation and member of the base.
    package let unfit: Set<String>
    package let error: MoultError

    package init(_ unfit: Set<String>, _ error: MoultError) { (self.unfit, self.error) = (unfit, error) }

    /// Returns whether an error while patching is caused by the files, and not by a full disk or a cancellation.
    static func isCausedByFiles(_ error: MoultError) -> Bool {
        (300..<400).contains(error.code.rawValue) || error.code == .digest || (error.cause as? Errno) == .noEntry
    }
}
