internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultTrust
package import StepKit

/// Makes a patch from one file to another, as a separate file.
package struct PatchMaker {
    let threads: Int
    let memory: PatchMemory
    let progress: @Sendable (_ done: Int, _ total: Int) throws -> Void

    /// `memory` is the limit in bytes, not including the two mapped files; nil for no limit.
    package init(
        threads: Int, memory: Int? = nil,
        progress: @escaping @Sendable (_ done: Int, _ total: Int) throws -> Void = { _, _ in }
    ) {
        (self.threads, self.progress) = (threads, progress)
        self.memory = PatchMemory(threads: threads, limit: memory)
    }

    /// The lowest allowed value of `memory`.
    package static let minMemory = PatchMemory.minimum

    /// Writes the patch to a new file, and verifies it by applying it; `old` is nil for a patch without an old file. The files are
    /// mapped into memory: no other program may truncate them.
    package func make(
        from old: String?, to new: String, as path: String, mode: UInt32 = 0o644
    ) throws -> Manifest.Content {
        let target = SharedFile(try Descriptor(path, .create, mode: mode))
        let total = try Files.factsThroughLinks(new)?.size ?? 0
        let progress = progress
        try PatchWriter(from: old.map { try Descriptor($0, .read) }, to: Descriptor(new, .read))
            .write(using: memory, progress: { try progress($0, total) }, output: { try target.write($0) })
        try verify(path, from: old, to: new, size: total)
        return Manifest.Content(size: try Files.facts(path)?.size ?? 0, sha256: try SHA256.digest(ofFileAt: path).hex)
    }

    /// Returns whether two files have so little in common that a patch would be as large as the compressed new file.
    package static func isUnlike(_ old: String, _ new: String) throws -> Bool {
        try PatchWriter(from: Descriptor(old, .read), to: Descriptor(new, .read)).isUnlike()
    }

    private func verify(_ patch: String, from old: String?, to new: String, size: Int) throws {
        let expected = SharedFile(try Descriptor(new, .read))
        let reader = try PatchReader(
            Descriptor(patch, .read), base: old.map { try Descriptor($0, .read) }, resultSize: size)
        try reader.read(threads: threads) { index, bytes in
            let offset = reader.layout.pieces[index].offset
            guard try expected.has(bytes, at: offset) else {
                throw MoultError(
                    .packing, what: "the patch \(patch) does not reproduce the new database",
                    why: "the result differs at byte \(offset) or later",
                    now: "Report this as a bug in moult, and pack without a patch.")
            }
        }
    }

    /// A file that is used by closures on several threads.
    private final class SharedFile: Sendable {
        private let file: Descriptor

        init(_ file: consuming Descriptor) { self.file = file }

        /// Writes bytes. The caller must ensure that only one thread writes at a time.
        func write(_ bytes: UnsafeRawBufferPointer) throws { try file.write(bytes) }

        func has(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws -> Bool {
            guard !bytes.isEmpty else { return true }
            return try MappedFile(file, offset..<offset + bytes.count).withBytes {
                guard let one = $0.baseAddress, let other = bytes.baseAddress else { return false }
                return memcmp(one, other, bytes.count) == 0
            }
        }
    }
}
