/// A piece of running text; help on a terminal and man pages are made from the same pieces.
package enum Prose: Sendable, ExpressibleByStringLiteral {
    case heading(String)
    case paragraph(String)
    /// Lines that stay as they are: what to type, or what a file looks like.
    case literal(String)
    /// Terms and what they mean.
    case list([(term: String, meaning: String)])

    package init(stringLiteral text: String) { self = .paragraph(text) }
}
