/// A positional argument of a verb.
package struct Argument: Sendable {
    package enum Presence: Sendable {
        case required, optional
        /// Any number of values.
        case repeated
        /// At least one value.
        case several
    }

    package let value: ArgumentType
    package let presence: Presence
    package let summary: String

    package init(_ value: ArgumentType, presence: Presence = .required, _ summary: String) {
        self.value = value
        self.presence = presence
        self.summary = summary
    }

    package var name: String { value.placeholder }
    package var isRequired: Bool { presence == .required || presence == .several }
    package var repeats: Bool { presence == .repeated || presence == .several }

    /// The argument in the usage line: `MANIFEST`, `[MANIFEST]`, `[FILE...]` or `FILE...`.
    package var usage: String {
        switch presence {
        case .required: name
        case .optional: "[\(name)]"
        case .repeated: "[\(name)...]"
        case .several: "\(name)..."
        }
    }
}

/// The type of an argument or of an option's value: its placeholder in the help, and the accepted values.
package struct ArgumentType: Sendable {
    package enum Kind: Sendable {
        case text
        case file(orDirectory: Bool)
        /// A path, or a URL to download from.
        case source
        case directory
        /// Exactly one of these words.
        case choice([String])
        /// Any text; completion offers these words.
        case offer(@Sendable () -> [String])
        case number(ClosedRange<Int>)
        /// Any text; completion offers the store's names of this kind.
        case ofStore(StoreNames)
    }

    /// The kinds of names in a store.
    package enum StoreNames: String, Sendable, CaseIterable {
        case databases, releases, holds, quarantine
    }

    package let placeholder: String
    package let kind: Kind

    package static func text(_ placeholder: String) -> Self { Self(placeholder: placeholder, kind: .text) }
    package static func file(_ placeholder: String = "FILE", orDirectory: Bool = false) -> Self {
        Self(placeholder: placeholder, kind: .file(orDirectory: orDirectory))
    }
    package static func source(_ placeholder: String) -> Self { Self(placeholder: placeholder, kind: .source) }
    package static func directory(_ placeholder: String = "DIR") -> Self {
        Self(placeholder: placeholder, kind: .directory)
    }
    package static func choice(_ placeholder: String, of words: [String]) -> Self {
        Self(placeholder: placeholder, kind: .choice(words))
    }
    package static func offer(_ placeholder: String, words: @escaping @Sendable () -> [String]) -> Self {
        Self(placeholder: placeholder, kind: .offer(words))
    }
    package static func ofStore(_ placeholder: String, _ names: StoreNames) -> Self {
        Self(placeholder: placeholder, kind: .ofStore(names))
    }
    package static func number(_ placeholder: String = "N", in range: ClosedRange<Int>) -> Self {
        Self(placeholder: placeholder, kind: .number(range))
    }
}
