package import MoultFiles

extension SHA256 {
    /// Reads a file once, and returns the digests of the whole file and of its consecutive parts.
    ///
    /// `stop` is called for each block, and may throw.
    package static func digests(
        of file: borrowing Descriptor, parts: [Int], stop: () throws -> Void
    ) throws -> (whole: Digest, parts: [Digest]) {
        var whole = try SHA256()
        let running = PartDigests(parts)
        try forEachBlock(of: file) { block in
            try stop()
            try whole.update(block)
            try running.update(block)
        }
        return (try whole.finish(), running.digests)
    }
}

/// The digests of the consecutive parts of the input.
private final class PartDigests {
    private let sizes: [Int]
    private var running: SHA256?
    private var done = 0
    var digests: [Digest] = []

    init(_ sizes: [Int]) { self.sizes = sizes }

    func update(_ block: UnsafeRawBufferPointer) throws {
        var rest = block
        while !rest.isEmpty, digests.count < sizes.count {
            if running == nil { running = try SHA256() }
            let count = min(rest.count, sizes[digests.count] - done)
            try running?.update(UnsafeRawBufferPointer(rebasing: rest[..<count]))
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            done += count
            guard done == sizes[digests.count], let digest = try running.take()?.finish() else { continue }
            digests.append(digest)
            done = 0
        }
    }
}
