/// A path or URL as the operator wrote it. Its description hides every part of a URL that may be secret.
///
/// Query strings may contain tokens and signatures. Messages, reports and records use the description, as string interpolation
/// does; `withSecrets` is only for the request to the server and for `moult.json`.
package struct Address: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package let withSecrets: String

    package init(_ text: String) { withSecrets = text }

    /// The URL with `***` in place of user and password, and of everything after the first `?` or `#`.
    package var description: String {
        guard let parts else { return withSecrets }
        let rest = parts.rest.first.map { "\($0)\(Self.mark)" } ?? ""
        return "\(parts.scheme)\(parts.hasUser ? "\(Self.mark)@" : "")\(parts.hostAndPath ?? Self.mark[...])\(rest)"
    }

    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// Whether the description hides a part of the address.
    package var hasSecrets: Bool { description != withSecrets }

    /// Whether this address was read from a record, which contains only the description of the original.
    package var isRedacted: Bool { !hasSecrets && description.contains(Self.mark) }

    /// Returns text that quotes this address, such as a library's message, without the secrets.
    package func redacted(_ text: String) -> String {
        guard let parts else { return text }
        let result = text.replacing(withSecrets, with: description)
        let secret = parts.rest.dropFirst()
        return secret.isEmpty ? result : result.replacing(secret, with: Self.mark)
    }

    private static let mark = "***"

    /// The parts of a URL; nil for a file name, in which a question mark is an ordinary character. `scheme` includes `://`, and
    /// `rest` is query and fragment. `hostAndPath` is nil if they cannot be separated from a password.
    private var parts: (scheme: Substring, hasUser: Bool, hostAndPath: Substring?, rest: Substring)? {
        guard contains(":", in: Array(withSecrets.utf8)) else { return nil }
        let lower = withSecrets.lowercased()
        // `http:` without slashes is a typo, but must not expose a secret either.
        let isWeb = lower.hasPrefix("http:") || lower.hasPrefix("https:")
        guard
            let separator = withSecrets.utf8.firstRange(of: "://".utf8)
                ?? (isWeb ? withSecrets.utf8.firstRange(of: ":".utf8) : nil),
            !lower.hasPrefix("file:")
        else { return nil }
        // So must `http:/`, with one slash.
        let isSingle = isWeb && withSecrets[separator.upperBound...].isAbsolutePath
        let afterScheme = Substring(withSecrets[separator.upperBound...].utf8.dropFirst(isSingle ? 1 : 0))
        let end = afterScheme.unicodeScalars.firstIndex { $0 == "?" || $0 == "#" } ?? afterScheme.endIndex
        let authority = Substring(afterScheme[..<end].unicodeScalars.prefix { $0 != "/" })
        let host =
            authority.unicodeScalars.lastIndex(of: "@").map { Substring(authority[$0...].unicodeScalars.dropFirst()) }
            ?? authority
        let port = host.hasSuffix("]") ? nil : host.lastIndex(of: ":").map { host[$0...].dropFirst() }
        let hasPort = port?.allSatisfy(\.isNumber) ?? true
        return (
            withSecrets[..<afterScheme.startIndex], host.startIndex != authority.startIndex,
            hasPort ? afterScheme[host.startIndex..<end] : nil, afterScheme[end...]
        )
    }
}
