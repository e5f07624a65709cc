internal import Moult
internal import MoultBasics
internal import Synchronization

/// One call of a verb: its options and arguments, and the functions for its output.
struct Call: Sendable {
    let command: Command
    let line: ParsedLine
    let output: Output
    let environment: Environment
    let steps: StepSet

    func has(_ flag: Option) -> Bool { line.has(flag) }
    func value(_ option: Option) -> String? { line.options[option.name]?.last }
    func values(_ option: Option) -> [String] { line.options[option.name] ?? [] }
    /// Returns the value of an option that the parser has validated as a number.
    func number(_ option: Option) -> Int? { value(option).flatMap { Int($0) } }

    func value(_ argument: Argument) -> String? { line.arguments[argument.name]?.first }
    func values(_ argument: Argument) -> [String] { line.arguments[argument.name] ?? [] }
    func required(_ argument: Argument) throws(MoultError) -> String {
        guard let value = value(argument) else { throw UsageErrors(verb: command.name).missing(argument) }
        return value
    }

    func required(_ option: Option) throws(MoultError) -> String {
        guard let value = value(option) else { throw UsageErrors(verb: command.name).missing(option) }
        return value
    }

    /// The given ones of these options, as words of a command line.
    func words(of options: [Option]) -> [String] {
        options.filter(has).flatMap { option in
            option.value == nil ? ["--\(option.name)"] : values(option).flatMap(option.words)
        }
    }

    /// The words `--store DIR` if the option was given; otherwise empty.
    var storeWords: [String] { line.storeWords }

    func store() throws -> String {
        let store = try namedStore()
        try check(store)
        return store
    }

    /// The directory of the store that a command creates if it does not exist.
    var storeToCreate: String {
        // The only possible error is that the store is missing.
        (try? namedStore()) ?? "./store"
    }

    /// Throws if other users could change the store's files while this process acts on them as root.
    func check(_ store: String) throws {
        // Checked once, because a sandboxed process cannot check again.
        guard Self.checkedStore.withLock({ $0 != store }) else { return }
        try Custody(StoreLayout(root: store)).check()
        Self.checkedStore.withLock { $0 = store }
    }

    private static let checkedStore = Mutex<String?>(nil)

    /// Returns the directory of the chosen store, like `store()`, but without checking who owns it.
    func namedStore() throws(MoultError) -> String {
        try StoreLocation.find(option: value(.store), environment: environment)
    }

    /// Creates the error for options and arguments that are valid, but not together.
    func wrongUsage(_ what: String, why: String? = nil) -> MoultError {
        UsageErrors(verb: command.name).error(what, why: why)
    }

    /// Returns the error with commands that can be pasted, for a verb that prints the error as part of its result.
    func pasted(_ error: MoultError) -> MoultError {
        error.repeating(line, commands: Command.all).naming(store: storeWords, in: Command.all.takingStore)
    }

    /// Returns a new progress bar for one operation; it shows nothing where output is not a terminal.
    func progressBar() -> ProgressBar {
        ProgressBar(
            console: output.console, quiet: output.isQuiet || output.format != .text, ticks: true,
            isStopping: { Interruption.isRequested })
    }
}
