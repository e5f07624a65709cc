internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit
internal import Synchronization

/// Writes the bundle, and returns its entry for the manifest: file name, size, digest, and for .tar.zst its frames.
struct BundlePacker {
    let options: PackOptions
    let outputStaging: String
    /// Called for every piece; throws to stop packing.
    let throwIfStopped: () throws -> Void

    func pack(_ members: [(name: String, size: Int)], to path: String, named name: String, modified: Int) throws
        -> Manifest.Bundle
    {
        let file = try DigestedFile(path: path, mode: 0o644)
        let frames =
            try options.format == .tar(.zstd)
            ? inFrames(members, modified, to: file) : nil
        if frames == nil {
            try ArchiveWriter(options.format, members: members, modified: modified)
                .write(output: { try file.write($0) }, source: source(members))
        }
        return Manifest.Bundle(file: name, size: file.size, sha256: try file.finish(), frames: frames)
    }

    private func inFrames(_ members: [(name: String, size: Int)], _ modified: Int, to file: DigestedFile) throws
        -> Manifest.Frames
    {
        let layout = try BundleLayout(members: members, modified: modified)
        let digests = FrameDigests()
        let writer = BundleWriter(layout, level: options.level, threads: options.threads)
        let frames = try writer.write(
            onFrame: { index, content in digests.set(index, try SHA256.digest(of: content).hex) },
            output: { try file.write($0) }, source: source(members))
        return Manifest.Frames(
            packed: frames.map(\.packedSize), content: frames.map(\.contentSize), sha256: digests.joined(frames.count))
    }

    private func source(_ members: [(name: String, size: Int)]) -> BundleWriter.Source {
        let total = members.reduce(0) { $0 + $1.size }
        var done = 0
        return { index, write in
            let file = try Descriptor("\(outputStaging)/\(members[index].name)", .read)
            try withUnsafeTemporaryAllocation(byteCount: 1 << 20, alignment: 16) { buffer in
                while true {
                    let count = try file.read(into: buffer)
                    if count == 0 { break }
                    try throwIfStopped()
                    try write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
                    done += count
                    try options.progress(PackProgress(what: "compress", done: done, total: total))
                }
            }
            try file.close()
        }
    }
}

/// The digests of the frames, computed on the threads that compress them.
private final class FrameDigests: Sendable {
    private let digests = Mutex<[Int: String]>([:])

    func set(_ index: Int, _ digest: String) { digests.withLock { $0[index] = digest } }
    func joined(_ count: Int) -> String { digests.withLock { all in (0..<count).map { all[$0] ?? "" }.joined() } }
}
