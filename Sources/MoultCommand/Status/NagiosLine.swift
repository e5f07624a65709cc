internal import Moult
internal import MoultBasics
internal import MoultFiles

/// `moult status --nagios`: one line with the findings, followed by a bar and the performance data.
struct NagiosLine {
    let verdict: Verdict
    /// The status; nil if it could not be read.
    let status: Status?

    /// Reads the status. A store that cannot be read is a result here, not an error, so that the monitor shows the reason.
    init(readingStatus: () throws -> Status) {
        do {
            let status = try readingStatus()
            (self.status, verdict) = (status, Verdict(status))
        } catch {
            status = nil
            let error = ErrorReport(error).error
            let text = error.what + (error.why.map { ": \($0)" } ?? "")
            verdict = Verdict([Verdict.Finding(state: .unknown, text: text)])
        }
    }

    func write(to page: inout Page) {
        let word = "\(verdict.state)".uppercased()
        let words = [release] + verdict.findings.map(\.text)
        // Nagios takes a bar as the end of the text, and a line feed as the end of the line.
        let text = words.compactMap(\.self).joined(separator: "; ").replacing(scalar: "|", with: "/").replacing(
            scalar: "\n", with: " ")
        page.line("MOULT \(word) - \(text)\(performance)")
    }

    private var release: String? {
        status.map { status in
            status.product + (status.current.map { " \(Generation.version(of: $0.name))" } ?? "")
        }
    }

    private var performance: String {
        guard let status else { return "" }
        let age = status.since.map { "age=\(max(0, Timestamp.now.seconds - $0.seconds))s " } ?? ""
        let bytes = status.generations.reduce(0) { $0 + $1.size }
        return " | \(age)generations=\(status.generations.count) bytes=\(bytes)B laggards=\(status.laggards.count)"
    }
}
