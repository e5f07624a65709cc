internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Writes the bundle, and returns its entry for the manifest: file name, size and digest.
struct BundlePacker {
    let options: PackOptions
    let outputStaging: String
    /// Called for every piece; throws to stop packing.
    let throwIfStopped: () throws -> Void

    func pack(_ members: [(name: String, size: Int)], to path: String, named name: String, modified: Int) throws
        -> Manifest.Bundle
    {
        let file = try DigestedFile(path: path, mode: 0o644)
        let level = options.format == .tar(.zstd) ? options.level : 6
        try ArchiveWriter(options.format, members: members, modified: modified, level: level, threads: options.threads)
            .write(output: { try file.write($0) }, source: source(members))
        return Manifest.Bundle(file: name, size: file.size, sha256: try file.finish())
    }

    private func source(_ members: [(name: String, size: Int)]) -> ArchiveWriter.Source {
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
