/// What a shell offers where a value stands.
enum Completion {
    case nothing
    case files
    case directories
    case words([String])
}

extension ArgumentType {
    var completion: Completion {
        switch kind {
        case .text, .number: .nothing
        case .file: .files
        case .directory: .directories
        case .choice(let words): .words(words)
        case .offer(let words): .words(words())
        }
    }
}

extension String {
    /// The text as one word of a POSIX shell.
    var shellQuoted: String {
        "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
