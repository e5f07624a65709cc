/// A command line that was understood: what is to be done, and with which options and arguments.
package struct ParsedLine: Sendable {
    /// The verb, nil if none was given.
    package var command: Command?
    /// The values of the options given, by long name; a flag has none.
    package var options: [String: [String]] = [:]
    /// The values of the arguments given, by name.
    package var arguments: [String: [String]] = [:]

    package func has(_ option: Option) -> Bool { options[option.name] != nil }

    /// `--store DIR`, if it was given.
    package var storeWords: [String] { options[Option.store.name]?.last.map { ["--store", $0] } ?? [] }
}
