internal import MoultBasics
internal import MoultFiles

extension Transport {
    /// Brings a large file in from the first place that gives it, byte for byte as long as it must be.
    ///
    /// `path` keeps what came when it is cut off or killed, and is gone on with. The caller proves what has come, and
    /// removes the file if it is wrong. `progress` gets the bytes that are there.
    package func download(
        _ location: Location, to path: String, size: Int, progress: @escaping (Int) throws -> Void
    ) throws {
        guard case .web(let url) = location else {
            throw MoultError(.location, what: "\(location) is a file", why: "only what a server has is fetched")
        }
        let tag = Tag(path: path)
        let taker = try PartialFile(path, size: size, named: "\(url)", progress: progress)
        try patiently(url, seconds: manners.fileDeadline, progress: { taker.have }) { until in
            if taker.have == size { return }
            let head = try WebRequest(
                url: url, offset: taker.have, ifRange: try tag.of(url), ifNoneMatch: nil
            )
            .perform(manners, until: until, Noting(taker) { try tag.note($0.tag, of: url) }, stopIfAsked)
            switch head.status {
            case 200, 206: break
            case 416:
                // The partial file is not a part of the server's present file.
                try taker.restart()
                throw cut(url, taker)
            default: throw head.refusal(url)
            }
            if taker.have != size { throw cut(url, taker) }
        }
        try tag.forget()
    }

    private func cut(_ url: Address, _ taker: PartialFile) -> MoultError {
        MoultError(
            .unreachable, .busy, what: "\(url) was cut off", why: "\(taker.have) of \(taker.size) bytes came",
            now: "Try again later: it resumes there.")
    }
}

/// The server's tag of the file that was partly downloaded, so that parts of two versions are not joined. The record has the
/// URL without its secrets: the digest proves the file in any case.
private struct Tag {
    let path: String
    private var file: String { "\(path).tag" }

    /// The tag, if the part came from this place. A weak one says too little to go on with.
    func of(_ url: Address) throws -> String? {
        let text = String(decoding: try Files.read(file, limit: 1 << 14) ?? [], as: UTF8.self)
        let lines = text.split(separator: "\n").map { String($0) }
        guard lines.count == 2, lines[0] == "\(url)", lines[1].hasPrefix("\"") else { return nil }
        return lines[1]
    }

    func note(_ tag: String?, of url: Address) throws {
        guard let tag else { return try forget() }
        if try of(url) == tag { return }
        try Files.replace(file, with: Array("\(url)\n\(tag)\n".utf8), mode: 0o600)
    }

    func forget() throws { try Files.remove(file) }
}

/// A sink that also passes on the head first.
private final class Noting: ResponseSink {
    private let taker: PartialFile
    private let note: (WebHead) throws -> Void

    init(_ taker: PartialFile, note: @escaping (WebHead) throws -> Void) { (self.taker, self.note) = (taker, note) }

    func begin(_ head: WebHead) throws {
        try taker.begin(head)
        if head.status == 200 || head.status == 206 { try note(head) }
    }
    func take(_ bytes: UnsafeRawBufferPointer) throws { try taker.take(bytes) }
}
