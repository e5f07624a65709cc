internal import Moult
internal import MoultBasics
internal import MoultFiles

/// `moult status --nagios`: one line with the findings, followed by a bar and the performance data.
struct NagiosLine {
    /// The status and its findings; nil if it could not be read.
    let status: Status?
    private let texts: [String]
    let state: State

    /// The raw values are the exit statuses of Nagios checks.
    enum State: Int32 { case ok, warning, critical, unknown }

    /// Reads the status. A store that cannot be read is a result here, not an error, so that the monitor shows the reason.
    init(readingStatus: () throws -> Status) {
        do {
            let status = try readingStatus()
            let findings = status.findings().filter { $0.severity > .note }
            (self.status, texts, state) = (status, findings.map(\.description), State(findings))
        } catch {
            let error = ErrorReport(error).error
            (status, texts, state) = (nil, [error.what + (error.why.map { ": \($0)" } ?? "")], .unknown)
        }
    }

    func write(to page: inout Page) {
        let word = "\(state)".uppercased()
        // Nagios takes a bar as the end of the text, and a line feed as the end of the line.
        let text = ([release].compactMap(\.self) + texts).joined(separator: "; ").replacing(scalar: "|", with: "/")
            .replacing(scalar: "\n", with: " ")
        page.line("MOULT \(word) - \(text)\(performance)")
    }

    private var release: String? {
        status.map { status in status.product + (status.current.map { " \(Generation.version(of: $0.name))" } ?? "") }
    }

    private var performance: String {
        guard let status else { return "" }
        let age = status.since.map { "age=\(max(0, Timestamp.now.seconds - $0.seconds))s " } ?? ""
        let bytes = status.generations.reduce(0) { $0 + $1.size }
        return " | \(age)generations=\(status.generations.count) bytes=\(bytes)B laggards=\(status.laggards.count)"
    }
}

extension NagiosLine.State {
    init(_ findings: [Finding]) {
        switch findings.worst {
        case nil, .note: self = .ok
        case .warning: self = .warning
        case .critical: self = .critical
        }
    }
}
