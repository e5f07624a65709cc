internal import MoultBasics
internal import MoultFiles

/// A request to a web server, sent by the helper program.
struct WebRequest {
    enum Method: String { case get = "GET", head = "HEAD", post = "POST", put = "PUT", patch = "PATCH" }
    enum Body {
        case text(String, type: String)
        case file(String, Range<Int>)
    }

    let url: Address
    var method = Method.get
    var offset = 0
    var ifRange: String?
    var ifNoneMatch: String?
    /// Whether caches between this machine and the server must ask the server whether their copy is current.
    var isFresh = false
    /// The accepted media types.
    var accept: String?
    var body: Body?
    /// The Authorization header, and the URL whose host and port receive it. With an authority, `~/.netrc` is not used.
    var authorization: String?
    var authority: String?
    /// Whether a public server has named the URL. Then the request does not connect to this machine or its network.
    var isPublicOnly = false
    /// The beginning of error messages, such as "cannot publish …"; nil for "cannot get" and the URL.
    var purpose: String?

    private var failed: String { purpose ?? "cannot get \(url)" }

    /// Sends the request, passes the response to `sink` as it arrives, and returns its head.
    func perform(
        _ retryPolicy: Transport.RetryPolicy, until: ContinuousClock.Instant, _ sink: any ResponseSink,
        _ stopIfAsked: () throws -> Void
    ) throws -> WebHead {
        // The URL is not passed as an argument, because every user can see the arguments of a program.
        var command = try Subprocess.Command([Helper.path()])
        command.endsWithParent = true
        var file: Descriptor?
        if case .file(let path, _) = body { file = try Descriptor(path, .read) }
        if let number = file?.number { command.files = [number] }
        // Keeps the descriptor open until the helper has inherited it.
        defer { file = nil }
        let child = try Subprocess(command, input: .bytes(json(retryPolicy, until).message))
        var head: WebHead?
        var lines = MessageLines(longest: 1 << 16)
        func requireTime() throws {
            try stopIfAsked()
            if ContinuousClock.now >= until { throw late }
        }
        do {
            // The helper enforces the time limits itself; `requireTime` stops a helper that hangs. The patience is long,
            // because the helper sends nothing while it follows redirects.
            while let block = try child.read(patience: 86_400, stop: requireTime) {
                var body = block
                if head == nil {
                    lines.add(block)
                    guard let line = try lines.next() else { continue }
                    let found = try WebHead(parsing: line, source: Helper.name)
                    try sink.begin(found)
                    (head, body) = (found, lines.rest())
                }
                if !body.isEmpty { try body.withUnsafeBytes { try sink.take($0) } }
            }
        } catch is MessageLines.TooLong {
            child.kill()
            throw Helper.invalidReply("the first line is too long")
        } catch {
            child.kill()
            throw error
        }
        return try ended(child.finish(), head, until)
    }

    private func json(_ retryPolicy: Transport.RetryPolicy, _ until: ContinuousClock.Instant) -> JSON {
        // The helper gets a little more than the remaining time, so that this process stops first and reports the reason.
        let left = max(until - .now, .zero) + .seconds(1)
        return .compact([
            "url": .string(url.withSecrets), "offset": .size(offset), "ifRange": .optional(ifRange),
            "ifNoneMatch": .optional(ifNoneMatch), "patience": .size(retryPolicy.patience),
            "minimumRate": .size(retryPolicy.minimumRate), "deadline": .size(Int(left.components.seconds) + 1),
            "bandwidth": .size(retryPolicy.bandwidth), "method": .string(method.rawValue), "accept": .optional(accept),
            "isFresh": isFresh ? true : nil, "authorization": .optional(authorization),
            "authority": .optional(authority),
            "usesNetrc": .bool(authority == nil), "isPublicOnly": isPublicOnly ? true : nil,
            "contentType": .optional(contentType), "text": .optional(text),
            "bodyOffset": part.map { .size($0.lowerBound) }, "bodySize": part.map { .size($0.count) },
        ])
    }

    private var contentType: String? {
        switch body {
        case .text(_, let type): type
        case .file: "application/octet-stream"
        case nil: nil
        }
    }

    private var text: String? { if case .text(let text, _) = body { text } else { nil } }
    private var part: Range<Int>? { if case .file(_, let part) = body { part } else { nil } }

    /// The error for a request that took longer than the time limit.
    private var late: Retryable {
        Retryable(
            MoultError(
                .unreachable, .busy, what: failed, why: "the request took longer than the time limit",
                now: #"Try again later. The limits are "fileDeadline" and "deadline" under "feed" in moult.json."#),
            isSlow: true)
    }

    private func ended(_ end: Subprocess.Result, _ head: WebHead?, _ until: ContinuousClock.Instant) throws -> WebHead {
        if end.succeeded {
            guard let head else { throw Helper.invalidReply("the reply is empty") }
            return head
        }
        let last = end.errors.split(separator: UInt8(ascii: "\n")).last.map { Array($0) } ?? []
        // If the last line is not JSON, the helper crashed.
        guard end.ending == .exited(1), let said = try? JSON(parsing: last, source: Helper.name),
            let why = said["why"]?.string.map({ url.redacted($0) })
        else {
            // The helper crashed, perhaps because of the server's data, perhaps because of a signal to the whole process group.
            // Another attempt shows which.
            throw MoultError(
                .unreachable, .busy, what: failed,
                why: "\(Helper.name) failed: \(url.redacted(end.complaint))", now: "Try again later.")
        }
        switch said["kind"]?.string {
        case "scheme":
            throw MoultError(
                .badAnswer, .refused, what: "\(url) redirects to another scheme", why: why,
                now: "If you trust the target, use its address directly.")
        case "redirect":
            throw MoultError(
                .badAnswer, .refused, what: "\(url) redirects to an address that moult refuses", why: why,
                now: "If you trust the target, use its address directly.")
        case "slow":
            throw ContinuousClock.now >= until ? late : Retryable(unreachable(why), isSlow: true)
        case "transient": throw unreachable(why)
        default:
            throw MoultError(
                .notThere, what: failed, why: why, now: "Check the address and the network.")
        }
    }

    private func unreachable(_ why: String) -> MoultError {
        MoultError(.unreachable, .busy, what: failed, why: why, now: "Try again later.")
    }
}
