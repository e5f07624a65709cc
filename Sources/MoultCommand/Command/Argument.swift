/// A positional argument of a verb.
struct Argument: Sendable {
    enum Presence: Sendable {
        case required, optional
        /// Any number of values.
        case repeated
        /// At least one value.
        case several
    }

    let value: ArgumentType
    let presence: Presence
    let summary: String

    init(_ value: ArgumentType, presence: Presence = .required, _ summary: String) {
        self.value = value
        self.presence = presence
        self.summary = summary
    }

    var name: String { value.placeholder }
    var isRequired: Bool { presence == .required || presence == .several }
    var repeats: Bool { presence == .repeated || presence == .several }

    /// The argument in the usage line: `MANIFEST`, `[MANIFEST]`, `[FILE...]` or `FILE...`.
    var usage: String {
        switch presence {
        case .required: name
        case .optional: "[\(name)]"
        case .repeated: "[\(name)...]"
        case .several: "\(name)..."
        }
    }
}

/// The type of an argument or of an option's value: its placeholder in the help, and the accepted values.
struct ArgumentType: Sendable {
    enum Kind: Sendable {
        case text
        case file(orDirectory: Bool)
        /// A path, or a URL to download from.
        case source
        case directory
        case choice([String])
        /// Any text; completion offers these words.
        case offer(@Sendable () -> [String])
        case number(ClosedRange<Int>)
        /// Any text; completion offers the store's names of this kind.
        case ofStore(StoreNames)
    }

    /// The kinds of names in a store.
    enum StoreNames: String, Sendable, CaseIterable { case databases, releases, holds, quarantine }

    let placeholder: String
    let kind: Kind

    static func text(_ placeholder: String) -> Self { Self(placeholder: placeholder, kind: .text) }
    static func file(_ placeholder: String = "FILE", orDirectory: Bool = false) -> Self {
        Self(placeholder: placeholder, kind: .file(orDirectory: orDirectory))
    }
    static func source(_ placeholder: String) -> Self { Self(placeholder: placeholder, kind: .source) }
    static func directory(_ placeholder: String = "DIR") -> Self { Self(placeholder: placeholder, kind: .directory) }
    static func choice(_ placeholder: String, of words: [String]) -> Self {
        Self(placeholder: placeholder, kind: .choice(words))
    }
    static func offer(_ placeholder: String, words: @escaping @Sendable () -> [String]) -> Self {
        Self(placeholder: placeholder, kind: .offer(words))
    }
    static func ofStore(_ placeholder: String, _ names: StoreNames) -> Self {
        Self(placeholder: placeholder, kind: .ofStore(names))
    }
    static func number(_ placeholder: String = "N", in range: ClosedRange<Int>) -> Self {
        Self(placeholder: placeholder, kind: .number(range))
    }
}
