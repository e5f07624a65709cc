internal import CCurl
internal import Glibc
internal import MoultBasics

/// One transfer by libcurl.
enum Fetch {
    /// Statuses: 0 there is an answer, whatever it says; 1 there is none, and stderr says why; 2 wrong usage.
    static func run() -> Int32 {
        signal(SIGPIPE, SIG_IGN)
        do {
            let request = try Request.read()
            try FetchGuard.confine()
            try transfer(request)
            return 0
        } catch let failure as Failure {
            say([
                "why": .string(failure.why), "transient": .bool(failure.isTransient),
                "redirected": .bool(failure.isRefusedRedirect),
            ])
            return 1
        } catch {
            say(["why": .string("\(error)"), "transient": false, "redirected": false])
            return 2
        }
    }

    private struct Failure: Error {
        let why: String
        let isTransient: Bool
        let isRefusedRedirect: Bool
    }

    private static func say(_ json: JSON) {
        let line = json.line + "\n"
        // Whoever started this is gone if it cannot be written.
        _ = write(STDERR_FILENO, line, line.utf8.count)
    }

    private static func transfer(_ request: Request) throws {
        guard curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK, let handle = curl_easy_init() else {
            throw Failure(why: "libcurl does not start", isTransient: false, isRefusedRedirect: false)
        }
        defer { curl_easy_cleanup(handle) }
        let answer = Answer()
        let headers = try HeaderList(request)
        var message = [CChar](repeating: 0, count: Int(CURL_ERROR_SIZE))
        let result = try message.withUnsafeMutableBufferPointer { buffer in
            let curl = Handle(curl: handle)
            try curl.set(CURLOPT_ERRORBUFFER, pointer: buffer.baseAddress)
            try prepare(curl, request, headers, answer)
            return curl_easy_perform(handle)
        }
        if result == CURLE_OK || answer.isEnough {
            if answer.writeHead() { return }
        }
        let text = String(decoding: message.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        let why = text.isEmpty ? String(cString: curl_easy_strerror(result)) : text
        throw Failure(
            why: answer.failure == 0 ? why : "nobody takes the answer", isTransient: transient.contains(result),
            isRefusedRedirect: result == CURLE_UNSUPPORTED_PROTOCOL && (300..<400).contains(answer.status))
    }

    /// What may be better a moment later.
    private static let transient: [CURLcode] = [
        CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_PARTIAL_FILE,
        CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
        CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_AGAIN,
    ]

    private static func prepare(_ curl: Handle, _ request: Request, _ headers: HeaderList, _ answer: Answer) throws {
        try curl.set(CURLOPT_URL, text: request.url)
        try curl.set(CURLOPT_NOSIGNAL, 1)
        try curl.set(CURLOPT_USERAGENT, text: "moult")
        // A redirection may lead elsewhere, but never to another scheme: not from https to http, not to a file.
        try curl.set(CURLOPT_PROTOCOLS_STR, text: request.scheme)
        try curl.set(CURLOPT_REDIR_PROTOCOLS_STR, text: request.scheme)
        try curl.set(CURLOPT_FOLLOWLOCATION, 1)
        try curl.set(CURLOPT_MAXREDIRS, 5)
        // Passwords come from the user's own file, and go to the host that they are for.
        try curl.set(CURLOPT_NETRC, Int(CURL_NETRC_OPTIONAL.rawValue))
        try curl.set(CURLOPT_CONNECTTIMEOUT, max(1, request.patience))
        // Less than this, and a server could keep the command for months. A limit of the operator's own may be lower.
        let slowest = 1024
        try curl.set(
            CURLOPT_LOW_SPEED_LIMIT, request.bandwidth > 0 ? max(1, min(slowest, request.bandwidth / 2)) : slowest)
        try curl.set(CURLOPT_LOW_SPEED_TIME, max(1, request.patience))
        try curl.set(CURLOPT_MAX_RECV_SPEED_LARGE, offset: request.bandwidth)
        // libcurl reads a hundred blocks before it looks at the time.
        if request.bandwidth > 0 { try curl.set(CURLOPT_BUFFERSIZE, max(1024, min(16_384, request.bandwidth / 200))) }
        try curl.set(CURLOPT_HTTPHEADER, pointer: UnsafeMutableRawPointer(headers.list))
        try authorities(curl)
        let taker = Unmanaged.passUnretained(answer).toOpaque()
        try curl.set(CURLOPT_HEADERDATA, pointer: taker)
        try curl.set(CURLOPT_WRITEDATA, pointer: taker)
        try curl.set(CURLOPT_HEADERFUNCTION) { bytes, size, count, taker in
            guard let bytes, let taker else { return 0 }
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            let text = String(decoding: line.prefix { $0 != 13 && $0 != 10 }, as: UTF8.self)
            Unmanaged<Answer>.fromOpaque(taker).takeUnretainedValue().header(text)
            return size * count
        }
        try curl.set(CURLOPT_WRITEFUNCTION) { bytes, size, count, taker in
            guard let bytes, let taker else { return 0 }
            let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return Unmanaged<Answer>.fromOpaque(taker).takeUnretainedValue().body(part) ? size * count : 0
        }
    }

    /// The variables by which users of curl name other authorities than the system's.
    private static func authorities(_ curl: Handle) throws {
        func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
        if let file = variable("CURL_CA_BUNDLE") ?? variable("SSL_CERT_FILE") {
            try curl.set(CURLOPT_CAINFO, text: file)
        }
        if let directory = variable("SSL_CERT_DIR") { try curl.set(CURLOPT_CAPATH, text: directory) }
    }

    /// The one transfer's settings, each of which is looked at.
    private struct Handle {
        let curl: UnsafeMutableRawPointer

        func set(_ option: CURLoption, _ value: Int) throws { try check(moult_curl_set_long(curl, option, value)) }
        func set(_ option: CURLoption, text: String) throws { try check(moult_curl_set_string(curl, option, text)) }
        func set(_ option: CURLoption, offset: Int) throws {
            try check(moult_curl_set_offset(curl, option, curl_off_t(offset)))
        }
        func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) throws {
            try check(moult_curl_set_pointer(curl, option, pointer))
        }
        func set(
            _ option: CURLoption,
            call: @escaping @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int
        ) throws { try check(moult_curl_set_callback(curl, option, call)) }

        private func check(_ code: CURLcode) throws {
            if code == CURLE_OK { return }
            throw Failure(why: String(cString: curl_easy_strerror(code)), isTransient: false, isRefusedRedirect: false)
        }
    }

    /// What is sent besides what libcurl sends on its own.
    private final class HeaderList {
        private(set) var list: UnsafeMutablePointer<curl_slist>?

        init(_ request: Request) throws {
            // Bytes are counted and digested as they are stored: no encoding on the way.
            try add("Accept-Encoding: identity")
            if request.offset > 0 { try add("Range: bytes=\(request.offset)-") }
            if let tag = request.ifRange, request.offset > 0 { try add("If-Range: \(tag)") }
            if let tag = request.ifNoneMatch { try add("If-None-Match: \(tag)") }
        }

        private func add(_ line: String) throws {
            // A tag is what a server said: it must not become a header of its own.
            guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else { return }
            guard let longer = curl_slist_append(list, line) else {
                throw Failure(why: "there is no memory for a header", isTransient: false, isRefusedRedirect: false)
            }
            list = longer
        }

        deinit { curl_slist_free_all(list) }
    }
}
