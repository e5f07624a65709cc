/// A set of versions given by a constraint: `>=1.4 <3`, `^2.1`, `~2.1.3`, `2.0.0 || >=2.2`, `*`.
///
/// Adjacent terms must all match, and `||` separates alternatives. Missing parts count as 0, with two exceptions: a bare or
/// partial version without an operator (`2`, `2.1`) matches all versions that start with it, and `<=2` and `>2` treat 2 as all
/// versions that start with 2. A pre-release matches only if a term names a pre-release with the same three numbers.
public struct VersionRange: Sendable, Equatable, CustomStringConvertible {
    public let description: String
    let alternatives: [[Bound]]

    struct Bound: Sendable, Equatable {
        enum Relation: Sendable { case atLeast, below }
        let relation: Relation
        let version: Version
        /// Whether the version was written with a pre-release tag, which allows pre-releases with the same numbers.
        let named: Bool
    }

    /// The maximum length of a range in bytes. It limits the number of alternatives, each of which is compared with each version.
    public static let longest = 1024

    /// Parses a range such as `>=1.4 <3`; nil if it is invalid or longer than `longest`.
    public init?(_ text: String) {
        guard text.utf8.count <= Self.longest else { return nil }
        description = text
        var alternatives: [[Bound]] = []
        // There must be nothing between the two characters of `||`.
        let parts = text.utf8.split(separator: UInt8(ascii: "|"), omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if index.isMultiple(of: 2) {
                guard let bounds = Self.bounds(part) else { return nil }
                alternatives.append(bounds)
            } else if !part.isEmpty || index == parts.count - 1 {
                return nil
            }
        }
        self.alternatives = alternatives
    }

    /// Returns whether a version is in the range.
    public func contains(_ version: Version) -> Bool {
        alternatives.contains { bounds in
            guard bounds.allSatisfy({ Self.holds($0, version) }) else { return false }
            return version.prerelease.isEmpty
                || bounds.contains {
                    $0.named
                        && ($0.version.major, $0.version.minor, $0.version.patch)
                            == (version.major, version.minor, version.patch)
                }
        }
    }

    /// Returns whether a version is within the bounds of the range, even if it is a pre-release that no term names.
    public func spans(_ version: Version) -> Bool {
        alternatives.contains { bounds in bounds.allSatisfy { Self.holds($0, version) } }
    }

    /// A version in the range; nil if the range is empty.
    public var example: Version? {
        let lowest = alternatives.flatMap { $0.filter { $0.relation == .atLeast }.map(\.version) } + [Version(0, 0, 0)]
        return lowest.first(where: contains)
    }

    private static func holds(_ bound: Bound, _ version: Version) -> Bool {
        switch bound.relation {
        case .atLeast: !version.precedes(bound.version)
        case .below: version.precedes(bound.version)
        }
    }

    private typealias Text = Substring.UTF8View

    private static func bounds(_ text: Text) -> [Bound]? {
        guard let terms = terms(text), !terms.isEmpty else { return nil }
        var bounds: [Bound] = []
        for (sign, version) in terms {
            guard let more = self.term(sign, version) else { return nil }
            bounds += more
        }
        return bounds
    }

    /// Splits a text into terms. `>= 1.4` is the same as `>=1.4`; but `> =1.4` and a trailing operator are invalid.
    private static func terms(_ text: Text) -> [(sign: Text, version: Text)]? {
        var terms: [(sign: Text, version: Text)] = []
        var pending: Text?
        for word in text.split(separator: UInt8(ascii: " ")) {
            let sign = word.prefix(while: isSign)
            if pending != nil, !sign.isEmpty { return nil }
            let version = word[sign.endIndex...]
            if version.isEmpty {
                pending = sign
            } else {
                terms.append((pending ?? sign, version))
                pending = nil
            }
        }
        return pending == nil ? terms : nil
    }

    private static func isSign(_ byte: UInt8) -> Bool { "<>=^~".utf8.contains(byte) }

    private static func term(_ sign: Text, _ text: Text) -> [Bound]? {
        let sign = String(Substring(sign))
        if sign.isEmpty, text.elementsEqual("*".utf8) {
            return [Bound(relation: .atLeast, version: Version(0, 0, 0), named: false)]
        }
        guard let (low, given) = partial(text) else { return nil }
        let named = !low.prerelease.isEmpty
        func atLeast(_ version: Version) -> Bound { Bound(relation: .atLeast, version: version, named: named) }
        func below(_ version: Version) -> Bound { Bound(relation: .below, version: version, named: named) }
        /// Returns the first version after all versions that start with the first `count` numbers.
        func after(_ count: Int) -> Version {
            switch count {
            case 1: Version(low.major + 1, 0, 0, prerelease: ["0"])
            case 2: Version(low.major, low.minor + 1, 0, prerelease: ["0"])
            // The next version: the pre-release `2.1.4-0` comes after `2.1.3`, and `2.1.3-a.0` comes after `2.1.3-a`.
            default:
                named
                    ? Version(low.major, low.minor, low.patch, prerelease: low.prerelease + ["0"])
                    : Version(low.major, low.minor, low.patch + 1, prerelease: ["0"])
            }
        }
        switch sign {
        case ">=": return [atLeast(low)]
        case "<": return [below(low)]
        case ">": return [atLeast(after(given))]
        case "<=": return [below(after(given))]
        case "", "=": return [atLeast(low), below(after(given))]
        case "~": return [atLeast(low), below(after(min(given, 2)))]
        case "^":
            // The range ends at the next change of the first number that is not 0.
            let fixed = low.major > 0 || given == 1 ? 1 : low.minor > 0 || given == 2 ? 2 : 3
            return [
                atLeast(low),
                below(fixed == 3 ? Version(low.major, low.minor, low.patch + 1, prerelease: ["0"]) : after(fixed)),
            ]
        default: return nil
        }
    }

    /// Parses a version whose last numbers may be missing, and returns it with the number of parts given.
    private static func partial(_ text: Text) -> (Version, given: Int)? {
        if let version = Version(text) { return (version, 3) }
        let numbers = Version.parts(text).map(Version.number)
        guard (1...2).contains(numbers.count), let major = numbers[0] else { return nil }
        guard numbers.count == 2 else { return (Version(major, 0, 0), 1) }
        guard let minor = numbers[1] else { return nil }
        return (Version(major, minor, 0), 2)
    }
}
