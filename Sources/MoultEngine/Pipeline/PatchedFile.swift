package import MoultBasics
internal import MoultFiles
internal import MoultStore
internal import MoultTrust
internal import Synchronization

/// The file that a patch makes, and its digest: pieces come on several threads in any order, and whichever is free hands
/// them to the digest in the order of the file.
final class PatchedFile: Sendable {
    private struct State {
        /// Where the pieces lie that are written and not yet digested.
        var written: [Int: Range<Int>] = [:]
        var next = 0
        var isDigesting = false
    }

    private let file: Descriptor
    private let state = Mutex(State())
    /// Touched only by the thread that has set `isDigesting`.
    private let digest = GrowingDigest()

    init(_ file: consuming Descriptor) { self.file = file }

    func add(_ bytes: UnsafeRawBufferPointer, piece: Int, at offset: Int) throws {
        try file.write(bytes, at: offset)
        // The disk begins at once, so that the sync at the end is short.
        try file.startWriteback(at: offset, count: bytes.count)
        state.withLock { $0.written[piece] = offset..<offset + bytes.count }
        while let (number, range) = next() {
            if number == piece {
                try digest.update(bytes)
            } else {
                // Another thread wrote it and has gone on; its pages are in memory.
                try MappedFile(file, range).withBytes { try digest.update($0) }
            }
            state.withLock { $0.isDigesting = false }
        }
    }

    /// The piece that this thread has to digest; nil if another thread has it, or it does not exist yet.
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

/// A patch, or its old file, is not as expected: the release is installed in another way.
package struct PatchFault: Error {
    /// The patches by their names, the base by generation and member.
    package let unfit: Set<String>
    package let error: MoultError

    package init(_ unfit: Set<String>, _ error: MoultError) { (self.unfit, self.error) = (unfit, error) }

    /// Whether an error of applying a patch says that of the files, and not that the disk is full or the caller stopped it.
    static func isOfFiles(_ error: MoultError) -> Bool {
        (300..<400).contains(error.code.rawValue) || error.code == .digest || (error.cause as? Errno) == .noEntry
    }
}
