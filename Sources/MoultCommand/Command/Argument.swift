/// One argument of a verb, told by its place.
package struct Argument: Sendable {
    package enum Presence: Sendable { case required, optional, repeated }

    package let value: ArgumentType
    package let presence: Presence
    package let summary: String

    package init(_ value: ArgumentType, presence: Presence = .required, _ summary: String) {
        self.value = value
        self.presence = presence
        self.summary = summary
    }

    package var name: String { value.placeholder }

    /// `MANIFEST`, `[MANIFEST]` or `[FILE...]`.
    package var usage: String {
        switch presence {
        case .required: name
        case .optional: "[\(name)]"
        case .repeated: "[\(name)...]"
        }
    }
}
