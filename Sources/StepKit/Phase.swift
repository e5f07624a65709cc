/// The five phases of an update, in the order in which they always come.
public enum Phase: String, Sendable, CaseIterable, Comparable {
    /// May it be done at all?
    case check
    /// What goes is taken out of service; nothing is destroyed.
    case delete
    /// What comes is put in place.
    case copy
    /// Do all of them open together?
    case attach
    /// Is what is in service what was proven?
    case verify

    public static func < (a: Phase, b: Phase) -> Bool {
        (allCases.firstIndex(of: a) ?? 0) < (allCases.firstIndex(of: b) ?? 0)
    }
}
