// The kernel, shells and SQLite compare and split text by bytes. Swift does so by characters, and treats two encodings of é as
// equal and a slash or a quote with a combining mark as one different character: then a check would be about another path or name
// than the one that is used. So paths and quotes are handled with these functions.

extension StringProtocol where SubSequence == Substring {
    package func replacing(scalar character: Unicode.Scalar, with text: String) -> String {
        guard unicodeScalars.contains(character) else { return String(self) }
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if scalar == character { result.append(contentsOf: text.unicodeScalars) } else { result.append(scalar) }
        }
        return String(result)
    }

    /// Returns the parts between separators, without empty ones.
    package func split(ascii separator: Unicode.Scalar, keepingEmpty: Bool = false) -> [Substring] {
        let all = self[...]
        return all.utf8.split(omittingEmptySubsequences: !keepingEmpty) { $0 == separator.value }.map { Substring($0) }
    }

    /// Returns the parts of a path, without empty ones.
    package func pathParts(keepingEmpty: Bool = false) -> [Substring] { split(ascii: "/", keepingEmpty: keepingEmpty) }

    package func hasBytePrefix(_ other: some StringProtocol) -> Bool { utf8.starts(with: other.utf8) }
    package func hasByteSuffix(_ other: some StringProtocol) -> Bool {
        self[...].utf8.reversed().starts(with: String(other).utf8.reversed())
    }

    /// The path without slashes at its end; `/` stays.
    package var withoutFinalSlashes: String {
        var rest = self[...].utf8
        while rest.count > 1, rest.last == UInt8(ascii: "/") { rest.removeLast() }
        return String(Substring(rest))
    }

    package var isAbsolutePath: Bool { utf8.first == UInt8(ascii: "/") }
    package var endsWithSlash: Bool { self[...].utf8.last == UInt8(ascii: "/") }
    package var containsSlash: Bool { utf8.contains(UInt8(ascii: "/")) }
    package var lastSlash: Index? { self[...].utf8.lastIndex(of: UInt8(ascii: "/")) }

    /// Returns the rest of the path below a directory; nil if the path is not below it.
    package func relative(to directory: String) -> String? {
        let start = directory == "/" ? "" : directory
        guard utf8.starts(with: start.utf8) else { return nil }
        let rest = self[utf8.index(startIndex, offsetBy: start.utf8.count)...]
        guard rest.isAbsolutePath else { return nil }
        return String(rest.utf8.dropFirst())
    }

    package func isBelow(_ directory: String) -> Bool { relative(to: directory) != nil }
}
