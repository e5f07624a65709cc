internal import MoultBasics
internal import MoultFiles
internal import MoultTrust

/// Requests to registries.
extension Transport {
    typealias Purpose = RegistrySession.Purpose

    /// Sends a request, and authenticates if the registry requires it. The response may still be a refusal.
    func ask(
        _ request: WebRequest, _ purpose: Purpose, until: ContinuousClock.Instant, _ sink: any ResponseSink
    ) throws -> WebHead {
        var request = request
        request.authority = purpose.repository.root
        request.authorization = registries.authorization(for: purpose)
        let head = try send(request, until: until, sink)
        // The status is also 401 if a token has expired.
        guard head.status == 401, let challenge = Challenge.first(of: head.challenges),
            let authorization = try authorization(challenge, by: head, purpose, until),
            authorization != request.authorization
        else { return head }
        request.authorization = authorization
        let again = try send(request, until: until, sink)
        registries.keep(again.status == 401 ? nil : authorization, for: purpose)
        return again
    }

    /// Returns the Authorization header that answers a challenge; nil if the user does not have the credentials for it.
    private func authorization(
        _ challenge: Challenge, by head: WebHead, _ purpose: Purpose, _ until: ContinuousClock.Instant
    ) throws -> String? {
        let known = try registries.credentials(for: purpose.repository, stop: stopIfAsked).credentials
        switch (challenge.scheme, known) {
        case (.basic, .password(let name, let password)): return Self.basic(name, password)
        case (.basic, _): return nil
        case (.bearer, _):
            return try token(challenge, purpose, known, isPublicOnly: !head.isLocal, until).map { "Bearer \($0)" }
        }
    }

    private static func basic(_ name: String, _ password: String) -> String {
        "Basic \(Base64.encode(Array("\(name):\(password)".utf8)))"
    }

    /// Requests a token, with the user's credentials if available.
    private func token(
        _ challenge: Challenge, _ purpose: Purpose, _ known: RegistryCredentials?, isPublicOnly: Bool,
        _ until: ContinuousClock.Instant
    ) throws -> String? {
        try checkRealm(challenge.realm, purpose.repository)
        // Not the scope of the challenge: it may be narrower than later requests need, and the token would have all rights that a
        // registry names there, with the user's password.
        var parts = [("scope", purpose.scope)]
        if let service = challenge.service { parts.append(("service", service)) }
        var request: WebRequest
        if case .identity(let secret) = known {
            parts += [("grant_type", "refresh_token"), ("client_id", "moult"), ("refresh_token", secret)]
            request = WebRequest(url: Address(challenge.realm), method: .post)
            request.body = .text(Self.form(parts), type: "application/x-www-form-urlencoded")
        } else {
            if case .password(let name, _) = known { parts.append(("account", name)) }
            let join = challenge.realm.contains("?") ? "&" : "?"
            request = WebRequest(url: Address("\(challenge.realm)\(join)\(Self.form(parts))"))
        }
        request.isPublicOnly = isPublicOnly
        request.authority = challenge.realm
        if case .password(let name, let password) = known { request.authorization = Self.basic(name, password) }
        request.purpose = "cannot get a token for \(purpose.repository)"
        let sink = MemorySink(limit: 1 << 16, named: "the token for \(purpose.repository)")
        let head = try send(request, until: until, sink)
        guard head.status == 200 else { throw try refusal(head, purpose, failed: request.purpose ?? "") }
        let source = "the reply of the token service of \(purpose.repository)"
        let answer = try Fields(JSON(parsing: sink.whole(head, request.url), source: source)) { place, why, _ in
            MoultError(.badAnswer, what: "\(source) cannot be read", why: "\(place) \(why)")
        }
        let token = try answer.optionalString("token") ?? answer.optionalString("access_token")
        guard let token, !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw MoultError(
                .badAnswer, what: "\(source) has no token", why: "neither \"token\" nor \"access_token\" contains one",
                now: "Report this to the operator of the registry.")
        }
        return token
    }

    /// Throws unless the token service uses TLS or a loopback address, because it receives the password.
    private func checkRealm(_ realm: String, _ repository: Repository) throws {
        let lower = realm.lowercased()
        let host = String(lower.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" })
        let isPlainHere = repository.isPlain && lower.hasPrefix("http://") && Repository.isLoopback(host)
        guard lower.hasPrefix("https://") || isPlainHere, (try? Location(realm)) != nil else {
            throw MoultError(
                .badAnswer, .refused, what: "cannot get a token for \(repository)",
                why: "the registry names a token service without TLS: \(Address(realm))",
                now: "Report this to the operator of the registry.")
        }
    }

    private static func form(_ parts: [(String, String)]) -> String {
        parts.map { "\($0)=\(encoded($1))" }.joined(separator: "&")
    }

    private static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            if Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/".utf8).contains(byte) {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "%" + twoHexDigits(byte)
            }
        }
        return result
    }

    /// Returns the error for an unsuccessful response.
    func refusal(_ head: WebHead, _ purpose: Purpose, failed: String) throws -> any Error {
        if let transient = head.transient(failed) { return transient }
        let login: Advice = "Log in first, for example with: \(run: ["skopeo", "login", "\(purpose.repository.host)"])"
        let now: Advice
        switch head.status {
        case 401, 403:
            let found = try registries.credentials(for: purpose.repository, stop: stopIfAsked)
            now =
                if let file = found.open, found.credentials == nil {
                    "Other users can read \(file), so it was not used. Protect it: \(run: ["chmod", "600", file])"
                } else if found.credentials == nil { login } else {
                    "Ask the operator of the registry for permission to \(purpose.writes ? "push" : "pull"), or log in as another user."
                }
        case 404: now = "Check the name of the repository."
        default: now = "Check the address, or report it to the operator of the registry."
        }
        return MoultError(.notThere, what: failed, why: head.why, now: now)
    }
}

/// Reading from registries.
extension Transport {
    private static let manifestTypes =
        "\(Artifact.manifestType), application/vnd.oci.image.index.v1+json"

    /// Gets one file of at most `limit` bytes. A request for a feed or a release always asks the registry; the other files of
    /// its artifact are then known.
    func read(_ file: RegistryFile, limit: Int, unless tag: String?) throws -> Answer {
        if let sha256 = file.sha256 {
            return try blob(file.repository, sha256, named: file.description, limit: limit).map { .bytes($0, tag: nil) }
                ?? .nothing
        }
        var artifact: Artifact?
        var digest: String?
        if file.name == RegistryFile.feedName || file.name == RegistryFile.release {
            if let tag, try self.digest(file.repository, file.tag) == tag { return .unchanged }
            guard let found = try self.artifact(file.repository, file.tag) else { return .nothing }
            (artifact, digest) = found
        } else {
            artifact = registries.artifact(file.place)
            if artifact == nil { artifact = try self.artifact(file.repository, file.tag)?.artifact }
        }
        guard let layer = artifact?.layer(file.name) else { return .nothing }
        guard layer.size <= limit else { throw MemorySink.tooLarge(file.description, limit) }
        let bytes = try blob(file.repository, layer.sha256, named: file.description, limit: limit)
        guard let bytes else { return .nothing }
        guard bytes.count == layer.size else {
            throw MoultError(
                .badAnswer, .refused, what: "\(file.description) does not have the size that the registry lists",
                why: "it has \(bytes.count) bytes instead of \(layer.size)",
                now: "Report this to the operator of the registry.")
        }
        return .bytes(bytes, tag: digest)
    }

    /// Requests something of a repository, and passes the head of the response to `use`. Returns nil if the registry does not have it.
    func find<Result>(
        _ path: String, in repository: Repository, method: WebRequest.Method = .head, accept: String? = nil,
        as purpose: Purpose? = nil, failed: String, _ sink: any ResponseSink = IgnoredBody(),
        _ use: (WebHead) throws -> Result?
    ) throws -> Result? {
        let purpose = purpose ?? Purpose(repository: repository, writes: false)
        var request = WebRequest(url: repository.url(path), method: method)
        (request.accept, request.purpose) = (accept, failed)
        return try retryingSmallRequest { until in
            let head = try ask(request, purpose, until: until, sink)
            switch head.status {
            case 200: return try use(head)
            case 404: return nil
            default: throw try refusal(head, purpose, failed: failed)
            }
        }
    }

    /// Returns the digest that a tag refers to; nil if the registry does not have the tag or does not report the digest.
    package func digest(_ repository: Repository, _ tag: String) throws -> String? {
        try find(
            "manifests/\(tag)", in: repository, accept: Self.manifestTypes, failed: "cannot get \(repository):\(tag)"
        ) { $0.digest }
    }

    /// Returns the tags of a repository; none if it does not exist. Some registries return all tags at once, others in pages.
    package func tags(of repository: Repository) throws -> [String] {
        var all: [String] = []
        var known: Set<String> = []
        while true {
            let last = all.last.map { "&last=\($0)" } ?? ""
            let new = try page(of: "tags/list?n=\(Self.tagsInPage)\(last)", repository).filter {
                known.insert($0).inserted
            }
            all += new
            if new.count < Self.tagsInPage { return all }
        }
    }

    private static let tagsInPage = 1000

    private func page(of path: String, _ repository: Repository) throws -> [String] {
        let place = "the tags of \(repository)"
        let sink = MemorySink(limit: 8 << 20, named: place)
        let bytes = try find(path, in: repository, method: .get, failed: "cannot get \(place)", sink) {
            try sink.whole($0, Address(place))
        }
        // The list is null for a repository without tags.
        return try bytes.map { try JSON(parsing: $0, source: place)["tags"]?.array?.compactMap(\.string) ?? [] } ?? []
    }

    /// Returns the artifact that a tag refers to, and its digest; nil if the registry does not have the tag.
    package func artifact(_ repository: Repository, _ tag: String) throws -> (artifact: Artifact, digest: String)? {
        let place = "\(repository):\(tag)"
        let sink = MemorySink(limit: Artifact.largest, named: place)
        let bytes = try find(
            "manifests/\(tag)", in: repository, method: .get, accept: Self.manifestTypes, failed: "cannot get \(place)",
            sink
        ) { try sink.whole($0, Address(place)) }
        let artifact = try bytes.map { try Artifact(parsing: $0, source: place) }
        registries.keep(artifact, at: place)
        guard let bytes, let artifact else { return nil }
        return (artifact, try Artifact.digest(of: bytes))
    }

    /// Returns the blob with a digest; nil if the registry does not have it.
    package func blob(_ repository: Repository, _ sha256: String, named name: String, limit: Int) throws -> [UInt8]? {
        let sink = MemorySink(limit: limit, named: name)
        return try find("blobs/sha256:\(sha256)", in: repository, method: .get, failed: "cannot get \(name)", sink) {
            let bytes = try sink.whole($0, Address(name))
            if try SHA256.digest(of: bytes).hex == sha256 { return bytes }
            throw MoultError(
                .digest, .refused, what: "\(name) does not match its digest in the registry",
                why: "its SHA-256 is not \(sha256)",
                now: "Try again later, or report it to the operator of the registry.")
        }
    }

    func retryingSmallRequest<Result>(
        _ body: (_ until: ContinuousClock.Instant) throws -> Result
    ) throws -> Result {
        try retrying(seconds: min(retryPolicy.fileDeadline, RetryPolicy.smallFileDeadline), body)
    }
}

extension RegistryFile {
    /// The address of the artifact that contains the file.
    var place: String { "\(repository):\(tag)" }
}
