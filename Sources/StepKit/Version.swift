/// A version according to Semantic Versioning 2.0, with its precedence rules.
public struct Version: Sendable, Hashable, CustomStringConvertible {
    /// The first number, which increases with incompatible changes.
    public let major: Int
    /// The second number, which increases with new features.
    public let minor: Int
    /// The third number, which increases with fixes.
    public let patch: Int
    /// The identifiers after the `-`: `rc`, `1` in `2.0.0-rc.1`.
    public let prerelease: [String]
    /// The identifiers after the `+`, which do not affect precedence.
    public let build: [String]

    /// Creates a version with these numbers.
    public init(_ major: Int, _ minor: Int, _ patch: Int, prerelease: [String] = [], build: [String] = []) {
        (self.major, self.minor, self.patch) = (major, minor, patch)
        (self.prerelease, self.build) = (prerelease, build)
    }

    /// The version of moult.
    public static let moult = Version(0, 1, 0)

    /// The version as part of a file name, where `+` is not allowed: `2.1.0_5`.
    public var inFileNames: String { description.replacing("+", with: "_") }

    /// Parses `2.1.0`, `2.1.0-rc.1`, `2.1.0+5`; nil for text that SemVer does not allow, and for a major, minor or
    /// patch number with more than 18 digits.
    public init?(_ text: String) { self.init(text.utf8[...]) }

    // Works on bytes for speed: a feed can have thousands of versions, and all relevant characters are ASCII.
    init?(_ text: Substring.UTF8View) {
        var rest = text
        func identifiers(after mark: UInt8) -> [Substring.UTF8View]? {
            guard let at = rest.firstIndex(of: mark) else { return [] }
            let parts = Self.parts(rest[rest.index(after: at)...])
            rest = rest[..<at]
            return parts.allSatisfy { !$0.isEmpty && $0.allSatisfy(Self.isIdentifier) } ? parts : nil
        }
        guard let build = identifiers(after: UInt8(ascii: "+")), let prerelease = identifiers(after: UInt8(ascii: "-")),
            prerelease.allSatisfy({ Self.isNumber($0) || !$0.allSatisfy(Self.isDigit) })
        else { return nil }
        let numbers = Self.parts(rest).map(Self.number)
        guard numbers.count == 3, let major = numbers[0], let minor = numbers[1], let patch = numbers[2] else {
            return nil
        }
        self.init(
            major, minor, patch, prerelease: prerelease.map { String(Substring($0)) },
            build: build.map { String(Substring($0)) })
    }

    /// Returns the parts between the dots.
    static func parts(_ text: Substring.UTF8View) -> [Substring.UTF8View] {
        text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    }

    static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func isIdentifier(_ byte: UInt8) -> Bool {
        isDigit(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D
    }

    /// Returns whether the text consists of digits without leading zeros, as SemVer requires.
    private static func isNumber(_ text: Substring.UTF8View) -> Bool {
        !text.isEmpty && text.allSatisfy(isDigit) && (text.first != 0x30 || text.dropFirst().isEmpty)
    }

    /// Returns a number of at most 18 digits, so that this number and the next one, which ranges need, fit into an Int.
    static func number(_ text: Substring.UTF8View) -> Int? {
        guard isNumber(text), text.count <= 18 else { return nil }
        return text.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    public var description: String {
        var text = "\(major).\(minor).\(patch)"
        if !prerelease.isEmpty { text += "-" + prerelease.joined(separator: ".") }
        if !build.isEmpty { text += "+" + build.joined(separator: ".") }
        return text
    }
}

extension Version {
    /// Returns whether this version precedes another one, by section 11 of SemVer: build metadata is ignored, and a pre-release
    /// precedes its release.
    public func precedes(_ other: Version) -> Bool {
        let mine = (major, minor, patch)
        let theirs = (other.major, other.minor, other.patch)
        if mine != theirs { return mine < theirs }
        if prerelease.isEmpty || other.prerelease.isEmpty { return !prerelease.isEmpty && other.prerelease.isEmpty }
        for (a, b) in zip(prerelease, other.prerelease) where a != b {
            switch (Self.isNumber(a.utf8[...]), Self.isNumber(b.utf8[...])) {
            // Compared as numbers of any length.
            case (true, true) where a.utf8.count != b.utf8.count: return a.utf8.count < b.utf8.count
            case (true, false): return true
            case (false, true): return false
            // Compared in ASCII order, which is the order of the bytes.
            default: return a.utf8.lexicographicallyPrecedes(b.utf8)
            }
        }
        return prerelease.count < other.prerelease.count
    }

    /// Returns whether neither version precedes the other: they are equal except for build metadata.
    public func ranksWith(_ other: Version) -> Bool { !precedes(other) && !other.precedes(self) }
}
