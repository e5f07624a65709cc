internal import Moult
internal import MoultBasics
internal import MoultLibc

/// Runs a command line and returns its exit status.
struct Runner {
    let commands: [Command]
    let environment: Environment
    let console: Console
    var steps = StepSet.builtIn
    /// Whether this process may end while SQLite does not return.
    var endsStuckSQL = false

    func run(_ words: [String?]) -> ExitCode {
        guard !words.isEmpty else { return overviewWithoutVerb() }
        // The format of errors must be known before the line is parsed.
        let beforeEnd = words.prefix { $0 != "--" }
        var output = Output(console: console, format: beforeEnd.contains("--json") ? .json : .text)
        var command: Command?
        var line = ParsedLine()
        var status: ExitCode
        do {
            line = try LineParser.parse(Self.texts(words), commands: commands)
            command = line.command
            output = Output(
                console: console, format: line.has(.json) ? .json : .text, isQuiet: line.has(.quiet),
                isVerbose: line.has(.verbose))
            output.complete = { [words = line.storeWords, verbs = commands.takingStore] in
                $0.naming(store: words, in: verbs)
            }
            if endsStuckSQL { StuckSQL.watch(reportingTo: output) }
            status = try perform(line, output: output)
        } catch {
            // Findings are printed before the error that ended the command.
            console.flush()
            console.endProgress()
            output.report(
                (error as? MoultError)?.repeating(line, commands: commands)
                    .naming(store: line.storeWords, in: commands.takingStore)
                    .namingVariable(line.storeWords.isEmpty ? environment["MOULT_STORE"] : nil) ?? error)
            status = ErrorReport(error).status
        }
        if let failure = console.finish() { status = report(failure, after: status, of: command) }
        return status
    }

    /// Reports that results could not be written, and returns the exit status. That is a failure, unless the command may have
    /// changed the store or failed anyway: then the status must still show that.
    private func report(_ failure: Int32, after status: ExitCode, of command: Command?) -> ExitCode {
        let output = Output(console: console)
        let why = String(cString: strerror(failure))
        guard status == .done || status == .changes, command?.changesStore != true else {
            output.warn("cannot write the results: \(why); the exit status is still correct")
            return status
        }
        let error = MoultError(.output, what: "cannot write the results", why: why)
        output.report(error)
        return .failure(error.outcome)
    }

    /// Prints an overview to stderr if no verb is given. The exit status is that of a usage error, so that scripts fail.
    private func overviewWithoutVerb() -> ExitCode {
        var page = Page(for: console.err)
        OverviewHelp(commands: commands, listsAll: false).write(to: &page)
        console.diagnose(page.text)
        return .failure(.usage)
    }

    private static func texts(_ words: [String?]) throws(MoultError) -> [String] {
        var texts: [String] = []
        for (index, word) in words.enumerated() {
            guard let word else { throw UsageErrors(verb: nil).notText(argument: index + 1) }
            texts.append(word)
        }
        return texts
    }

    private func perform(_ line: ParsedLine, output: Output) throws -> ExitCode {
        if line.asksForVersion {
            output.print(json: .record(["version": moultVersion.description])) { $0.line("moult \(moultVersion)") }
            return .done
        }
        guard let command = line.command else {
            output.print(OverviewHelp(commands: commands, listsAll: false))
            return .done
        }
        if line.has(.help) {
            output.print(CommandHelp(command: command))
            return .done
        }
        try line.checkRules()
        return try command.run(
            Call(command: command, line: line, output: output, environment: environment, steps: steps))
    }
}
