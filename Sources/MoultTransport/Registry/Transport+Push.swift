internal import MoultBasics
internal import MoultTrust

/// Pushing to registries: blobs first, then the artifact that refers to them.
extension Transport {
    /// The content of a blob.
    package enum Content {
        case text(String)
        case file(String)
    }

    /// Larger blobs are uploaded in chunks of this size: proxies limit the size of requests, and only a failed chunk is
    /// sent again.
    static let partSize = 32 << 20

    /// Uploads a blob unless the registry already has it; returns whether it was uploaded. If the repository `source`
    /// in the same registry has the blob, it is mounted from there.
    package func push(
        _ content: Content, sha256: String, size: Int, to repository: Repository, mountedFrom source: Repository? = nil,
        progress: (Int) throws -> Void = { _ in }
    ) throws -> Bool {
        let upload = Upload(
            repository: repository, purpose: Purpose(repository: repository, writes: true, source: source?.name),
            content: content, digest: "sha256:\(sha256)", size: size)
        if try isStored(upload) { return false }
        var state = Upload.State()
        return try retrying(seconds: retryPolicy.fileDeadline, progress: { state.done }) { until in
            // The interrupted attempt may have completed the upload.
            if state.mayBeComplete, try isStored(upload) { return true }
            if state.uploadURL != nil { try resume(upload, &state, until) }
            if state.uploadURL == nil {
                guard try begin(upload, &state, until) else { return false }
            }
            try send(upload, &state, until, progress)
            return true
        }
    }

    /// Pushes an artifact with a tag, and returns its digest. Its blobs must already exist.
    package func put(_ artifact: Artifact, to repository: Repository, tag: String) throws -> String {
        let bytes = try artifact.bytes
        let digest = try Artifact.digest(of: bytes)
        let purpose = Purpose(repository: repository, writes: true)
        return try retryingSmallRequest { until in
            var request = WebRequest(url: repository.url("manifests/\(tag)"), method: .put)
            request.body = .text(String(decoding: bytes, as: UTF8.self), type: Artifact.manifestType)
            request.purpose = "cannot publish \(repository):\(tag)"
            let head = try ask(request, purpose, until: until, IgnoredBody())
            guard head.status == 201 else { throw try refusal(head, purpose, failed: request.purpose ?? "") }
            guard head.digest ?? digest == digest else {
                throw MoultError(
                    .badAnswer, .stuck, what: "\(repository):\(tag) differs from the published file",
                    why: "the registry says that its digest is \(head.digest ?? ""), and not \(digest)",
                    now: "Report this to the operator of the registry.")
            }
            return digest
        }
    }

    /// Pushes the empty configuration, which every artifact refers to.
    package func pushConfig(to repository: Repository, mountedFrom source: Repository?) throws {
        let bytes = Array(Artifact.emptyConfig.utf8)
        _ = try push(
            .text(Artifact.emptyConfig), sha256: SHA256.digest(of: bytes).hex, size: bytes.count, to: repository,
            mountedFrom: source)
    }

    private struct Upload {
        let repository: Repository
        let purpose: Purpose
        let content: Content
        let digest: String
        let size: Int

        var failed: String { "cannot push to \(repository)" }

        /// The progress of an upload.
        struct State {
            /// The URL for the next chunk.
            var uploadURL: String?
            /// Whether the registry that has named this URL is on the internet.
            var isPublicOnly = false
            var done = 0
            var mayBeComplete = false
        }

        func part(_ range: Range<Int>) -> WebRequest.Body? {
            switch content {
            case .file(let path): .file(path, range)
            case .text(let text): .text(text, type: "application/octet-stream")
            }
        }
    }

    /// Returns whether the registry has a blob with this digest.
    package func has(_ sha256: String, in repository: Repository, named name: String) throws -> Bool {
        try find("blobs/sha256:\(sha256)", in: repository, failed: "cannot get \(name)") { _ in true } ?? false
    }

    /// Returns whether the registry has the blob. The request asks for push access, so that its token is also valid for the upload.
    private func isStored(_ upload: Upload) throws -> Bool {
        try find("blobs/\(upload.digest)", in: upload.repository, as: upload.purpose, failed: upload.failed) {
            // A blob with a different size does not have the same content.
            $0.total ?? upload.size == upload.size
        } ?? false
    }

    /// Starts an upload; returns false if the registry mounted the blob instead.
    private func begin(_ upload: Upload, _ state: inout Upload.State, _ until: ContinuousClock.Instant) throws -> Bool {
        let mount = upload.purpose.source.map { "?mount=\(upload.digest)&from=\($0)" } ?? ""
        var request = WebRequest(url: upload.repository.url("blobs/uploads/\(mount)"), method: .post)
        request.purpose = upload.failed
        let head = try ask(request, upload.purpose, until: until, IgnoredBody())
        if head.status == 201 { return false }
        guard head.status == 202 else { throw try refusal(head, upload.purpose, failed: upload.failed) }
        state.done = 0
        try next(head, upload, &state)
        return true
    }

    private func next(_ head: WebHead, _ upload: Upload, _ state: inout Upload.State) throws {
        if let uploadURL = head.uploadURL {
            let scheme = uploadURL.prefix { $0 != ":" }.lowercased()
            if scheme == upload.repository.root.prefix(while: { $0 != ":" }) {
                return (state.uploadURL, state.isPublicOnly) = (uploadURL, !head.isLocal)
            }
            throw MoultError(
                .badAnswer, .refused, what: upload.failed,
                why: "the registry returned an upload URL with the scheme \(scheme)",
                now: "Report this to the operator of the registry. A proxy in front of it must set X-Forwarded-Proto.")
        }
        throw MoultError(
            .badAnswer, what: upload.failed, why: "the registry returned no URL for the rest of the upload",
            now: "Report this to the operator of the registry.")
    }

    /// Uploads the remaining chunks and completes the upload.
    private func send(
        _ upload: Upload, _ state: inout Upload.State, _ until: ContinuousClock.Instant,
        _ progress: (Int) throws -> Void
    ) throws {
        while let uploadURL = state.uploadURL {
            let end = min(upload.size, state.done + Self.partSize)
            let isLast = end == upload.size
            var request = WebRequest(url: Address(uploadURL), method: isLast ? .put : .patch)
            if isLast {
                let join = uploadURL.contains("?") ? "&" : "?"
                request = WebRequest(url: Address("\(uploadURL)\(join)digest=\(upload.digest)"), method: .put)
            }
            request.isPublicOnly = state.isPublicOnly
            request.body = upload.part(state.done..<end)
            request.purpose = upload.failed
            state.mayBeComplete = isLast
            let head = try ask(request, upload.purpose, until: until, IgnoredBody())
            guard head.status == (isLast ? 201 : 202) else {
                // The registry has dropped the upload: start again.
                if head.status == 404 || head.status == 416 { throw lost(upload, &state) }
                throw try refusal(head, upload.purpose, failed: upload.failed)
            }
            state.done = end
            try progress(end)
            if isLast { state.uploadURL = nil } else { try next(head, upload, &state) }
        }
    }

    private func lost(_ upload: Upload, _ state: inout Upload.State) -> MoultError {
        (state.uploadURL, state.done) = (nil, 0)
        return MoultError(
            .unreachable, .busy, what: upload.failed, why: "the registry has dropped the upload",
            now: "Try again later.")
    }

    /// After an interruption, resumes if the registry has exactly the chunks that were sent, and otherwise starts
    /// again.
    private func resume(_ upload: Upload, _ state: inout Upload.State, _ until: ContinuousClock.Instant) throws {
        guard let uploadURL = state.uploadURL, state.done > 0 else { return state.uploadURL = nil }
        var request = WebRequest(url: Address(uploadURL))
        request.isPublicOnly = state.isPublicOnly
        request.purpose = upload.failed
        let head = try ask(request, upload.purpose, until: until, IgnoredBody())
        guard head.status == 204, head.sent == "0-\(state.done - 1)" else {
            (state.uploadURL, state.done) = (nil, 0)
            return
        }
        try next(head, upload, &state)
    }
}
