internal import MoultBasics
internal import MoultFiles
internal import Synchronization

/// The helper process of a command, which keeps the connections to the servers open between requests. The first request starts
/// it; the request after one that it did not complete starts a new one.
///
/// `@unchecked`: the properties are used only within the lock, and one request follows the other.
final class HelperProcess: @unchecked Sendable {
    /// The end of a request.
    enum Outcome {
        case response(WebHead)
        case failure(why: String, kind: String?)
        /// The helper has ended.
        case crash(String)
    }

    private let lock = Mutex(())
    private let count = Atomic(0)
    private var child: Subprocess?
    /// The file that the child can upload.
    private var file: String?

    /// The bytes of all bodies so far.
    var received: Int { count.load(ordering: .relaxed) }

    /// Sends a request, and passes the response to `sink` as it arrives. If this throws, the helper ends.
    func perform(
        _ request: JSON, uploading file: String?, _ sink: any ResponseSink, stop: () throws -> Void
    ) throws -> Outcome {
        try lock.withLock { _ in
            let child = try running(uploading: file)
            // Until the end of the response, the child cannot serve another request.
            self.child = nil
            child.send(request)
            let outcome = try read(child, sink, stop)
            if case .crash = outcome { return outcome }
            self.child = child
            return outcome
        }
    }

    /// Returns the child if it can serve this request, or else starts one.
    private func running(uploading file: String?) throws -> Subprocess {
        if let child, file == nil || file == self.file, try Self.isIdle(child) { return child }
        // The URL is not passed as an argument, because every user can see the arguments of a program.
        var command = try Subprocess.Command([Self.path()])
        command.endsWithParent = true
        var descriptor: Descriptor?
        if let file { descriptor = try Descriptor(file, .read) }
        if let number = descriptor?.number { command.files = [number] }
        // Keeps the descriptor open until the helper has inherited it.
        defer { descriptor = nil }
        self.file = file
        do { return try Subprocess(command, input: .pipe) } catch let error as MoultError where error.cause is Errno {
            throw Self.cannotStart(error.why ?? error.what)
        }
    }

    private static func isIdle(_ child: Subprocess) throws -> Bool {
        while let event = try child.next(until: .now) {
            guard case .errors = event else { return false }
        }
        return true
    }

    private func read(_ child: Subprocess, _ sink: any ResponseSink, _ stop: () throws -> Void) throws -> Outcome {
        var lines = MessageLines(longest: 1 << 16)
        var head: WebHead?
        /// The bytes of the body that follow the last message.
        var left = 0
        // The helper enforces the time limits itself; `stop` stops a helper that hangs. The patience is long, because the helper
        // sends nothing while it follows redirects.
        while let block = try child.read(patience: 86_400, stop: stop) {
            lines.add(block)
            while true {
                if left > 0 {
                    let part = lines.take(left)
                    if part.isEmpty { break }
                    left -= part.count
                    count.add(part.count, ordering: .relaxed)
                    try part.withUnsafeBytes { try sink.take($0) }
                    continue
                }
                guard let line = try Self.next(&lines) else { break }
                let message = try JSON(parsing: line, source: Self.name)
                if let why = message["why"]?.string { return .failure(why: why, kind: message["kind"]?.string) }
                guard let known = head else {
                    head = try WebHead(message, source: Self.name)
                    try head.map { try sink.begin($0) }
                    continue
                }
                if message["end"] != nil { return .response(known) }
                guard let size = message["bytes"]?.integer, (1...1 << 20).contains(size) else {
                    throw Self.invalidReply("a message is not part of a response")
                }
                left = Int(size)
            }
        }
        return .crash(try child.finish().complaint)
    }

    private static func next(_ lines: inout MessageLines) throws -> [UInt8]? {
        do { return try lines.next() } catch { throw Self.invalidReply("a line is too long") }
    }
}

/// The program that sends requests to web servers, so that commands without network access do not have to load libcurl.
extension HelperProcess {
    static let name = "moult-fetch"

    /// Returns the path of the helper: the value of MOULT_FETCH, or a file next to this program, in an installation directory,
    /// or in PATH.
    static func path() throws -> String {
        if let named = try ProcessEnvironment.value("MOULT_FETCH") { return named }
        var places: [String] = []
        if let own = try Files.ownProgram() {
            let directory = Files.directory(of: own)
            places = ["\(directory)/\(name)", "\(Files.directory(of: directory))/libexec/moult/\(name)"]
        }
        places += ["/usr/local/libexec/moult/\(name)", "/usr/libexec/moult/\(name)"]
        places += ProcessEnvironment.searchPath.map { "\($0)/\(name)" }
        for place in places where try Files.factsThroughLinks(place)?.kind == .file { return place }
        throw MoultError(
            .helper, what: "cannot send requests to web servers", why: "\(name) is not installed next to moult",
            now: "Install it, or set MOULT_FETCH to its path.")
    }

    /// Returns the error if the helper is there and cannot be started, or cannot load its libraries.
    static func cannotStart(_ why: String) -> MoultError {
        MoultError(
            .helper, what: "cannot send requests to web servers", why: why,
            now: "\(name) needs the GNU C library, libstdc++ and libcurl. On Debian and Ubuntu, install them with: "
                + "\(run: ["apt", "install", "libcurl4", "libstdc++6", "ca-certificates"]). It does not run on systems with musl, such as Alpine: "
                + "use an image of Debian there, or a feed in a directory.")
    }

    /// Whether the program ended because the loader did not find a library.
    static func lacksLibrary(_ complaint: String) -> Bool {
        complaint.contains("error while loading shared libraries") || complaint.contains("Error loading shared library")
    }

    static func invalidReply(_ why: String) -> MoultError {
        MoultError(
            .helper, what: "\(name) sent an invalid reply", why: why,
            now: "Install the \(name) that comes with this version of moult.")
    }
}
