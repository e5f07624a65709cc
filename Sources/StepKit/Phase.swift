/// The five phases of an update, in the order in which they always come.
public enum Phase: String, Sendable, CaseIterable, Comparable {
    case check, delete, copy, attach, verify

    public static func < (a: Phase, b: Phase) -> Bool {
        (allCases.firstIndex(of: a) ?? 0) < (allCases.firstIndex(of: b) ?? 0)
    }
}
