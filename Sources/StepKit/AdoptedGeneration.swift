/// The names of the generations with files that were at their paths before moult: `0+adopted`, `0+adopted.2`, and so on. moult
/// never removes these generations automatically.
public enum AdoptedGeneration {
    private static let first = "0+adopted"

    /// Returns the name with this number, from 1.
    public static func name(_ number: Int) -> String { number == 1 ? first : "\(first).\(number)" }

    /// Returns the number in a name; nil for the generation of a release.
    public static func number(of name: String) -> Int? {
        if name == first { return 1 }
        guard name.hasPrefix("\(first)."), let number = Int(name.dropFirst(first.utf8.count + 1)), number > 1,
            name == Self.name(number)
        else { return nil }
        return number
    }

    /// Returns whether a generation has files from before moult; false without a generation.
    public static func isName(_ generation: String?) -> Bool { generation.flatMap { number(of: $0) } != nil }
}
