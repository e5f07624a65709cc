/// The few signs that are no letters, in Unicode or ASCII as the locale has it.
package struct Symbols: Sendable {
    package let tick: String
    package let cross: String
    package let arrow: String
    package let dot: String
    package let ellipsis: String
    let barDone: String
    let barRest: String

    static let unicode = Symbols(
        tick: "✓", cross: "✗", arrow: "→", dot: "·", ellipsis: "…", barDone: "━", barRest: "─")
    static let ascii = Symbols(
        tick: "ok", cross: "x", arrow: "->", dot: "-", ellipsis: "...", barDone: "#", barRest: ".")
}

extension Terminal {
    package var symbols: Symbols { hasUnicode ? .unicode : .ascii }
}
