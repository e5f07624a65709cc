internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import Synchronization

/// The digests of a bundle and of the files unpacked from its frames, computed while the steps examine these files. None of the
/// files is used before `verify` has returned.
final class UnpackedDigests: Sendable {
    private let work: Work
    private let thread: Mutex<Threads.Running?>

    /// Opens the files, and starts to compute the digests on this number of threads.
    init(bundle: String, sha256: String, files: [UnpackedFile], threads: Int) throws {
        let work = try Work(bundle: Descriptor(bundle, .read), sha256: sha256, files: files)
        self.work = work
        thread = Mutex(try Threads.start { work.run(threads: threads) })
    }

    /// Deinitialization stops reading the files.
    deinit {
        work.isStopped.withLock { $0 = true }
        wait()
    }

    /// Waits for all digests; throws if one does not match the manifest.
    func verify() throws {
        wait()
        for result in work.results.withLock({ $0 }) { try result?.get() }
    }

    private func wait() {
        thread.withLock { thread in
            thread?.wait()
            thread = nil
        }
    }

    private final class Work: Sendable {
        private let bundle: Descriptor
        private let sha256: String
        private let files: [UnpackedFile]
        /// One result for each file, in order, and one for the bundle.
        let results: Mutex<[Result<Void, any Error>?]>
        let isStopped = Mutex(false)

        init(bundle: consuming Descriptor, sha256: String, files: [UnpackedFile]) throws {
            results = Mutex(Array(repeating: nil, count: files.count + 1))
            self.bundle = bundle
            (self.sha256, self.files) = (sha256, files)
        }

        func run(threads: Int) {
            let outcome = Result {
                try Workers.run(jobs: files.count + 1, threads: threads) {
                    { job in
                        let result = Result { try self.verify(job) }
                        self.results.withLock { $0[job] = result }
                    }
                }
            }
            // This fails only if a thread could not be started. The failure is added to the results, so that unverified files
            // do not pass.
            if case .failure = outcome { results.withLock { $0.append(outcome) } }
        }

        private func verify(_ job: Int) throws {
            if job < files.count { return try files[job].verify(of: bundle.path, stop: stop) }
            let digest = try SHA256.digest(of: bundle, stop: stop).hex
            if digest == sha256 { return }
            throw MoultError(
                unsealed: bundle.path,
                "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(sha256.prefix(8))…")
        }

        private func stop() throws { if isStopped.withLock({ $0 }) { throw Stopped() } }
    }

    private struct Stopped: Error {}
}

/// A file unpacked from frames, with its digests according to the manifest.
final class UnpackedFile: Sendable {
    private let file: Descriptor
    private let name: String
    private let sha256: String
    private let frames: [(size: Int, sha256: String)]
    /// Whether the publisher's proof covers the file. Then the digest of the whole file is enough.
    let isProven: Bool

    init(_ path: String, name: String, sha256: String, frames: [(size: Int, sha256: String)], isProven: Bool) throws {
        file = try Descriptor(path, .record)
        (self.name, self.sha256, self.frames, self.isProven) = (name, sha256, frames, isProven)
    }

    func verify(of bundle: String, stop: () throws -> Void) throws {
        if isProven, try SHA256.digest(of: file, stop: stop).hex == sha256 { return }
        let digests = try SHA256.digests(of: file, parts: frames.map(\.size), stop: stop)
        var offset = 0
        for (frame, digest) in zip(frames, digests.parts) {
            if digest.hex != frame.sha256 { throw differs(at: offset, bundle) }
            offset += frame.size
        }
        let whole = digests.whole.hex
        if whole == sha256 { return }
        // A file of a single frame has two digests in the manifest, either of which could be wrong.
        guard frames.count > 1 else { throw differs(at: 0, bundle) }
        throw MoultError(
            .digest, what: "the manifest of \(bundle) contradicts itself",
            why:
                "the frames of \(name) form a file with SHA-256 \(whole.prefix(8))…, and the manifest says \(sha256.prefix(8))…",
            now: "Report this to the publisher: the release must be packed again.")
    }

    private func differs(at offset: Int, _ bundle: String) -> MoultError {
        MoultError(unsealed: bundle, "\(name) in the bundle differs at byte \(offset) or later")
    }
}

extension MoultError {
    /// Creates the error for a bundle that does not match its manifest.
    init(unsealed bundle: String, _ why: String) {
        self.init(
            .digest, what: "the bundle \(bundle) does not match its manifest", why: why,
            now: "Use the manifest and the bundle of the same release.")
    }
}
