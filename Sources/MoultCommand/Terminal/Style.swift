/// What a piece of text means; colour only underlines it, the words say it too.
package enum Style: Sendable, Equatable, CaseIterable {
    case added, removed, changed, good, bad, warning, dim, heading

    /// The parameters of the escape sequence (SGR). The 16 basic colours follow the user's theme, dark or light.
    var code: String {
        switch self {
        case .added, .good: "32"
        case .removed: "31"
        case .changed, .warning: "33"
        case .bad: "1;31"
        case .dim: "2"
        case .heading: "1"
        }
    }
}
