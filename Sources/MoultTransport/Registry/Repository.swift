package import MoultBasics

/// A repository in an OCI registry: `oci://HOST[:PORT]/NAME`, or `oci+http://…` on this machine.
package struct Repository: Sendable, Hashable, CustomStringConvertible {
    /// Host and port, as in credential files.
    let host: String
    /// The path of the repository on its host.
    let name: String
    /// Whether requests use plain HTTP; only allowed for loopback addresses.
    let isPlain: Bool

    package var description: String { "\(isPlain ? Self.plainScheme : Self.scheme)\(host)/\(name)" }

    private static let scheme = "oci://"
    private static let plainScheme = "oci+http://"

    /// Returns a URL of this repository's API.
    func url(_ path: String) -> Address { Address("\(root)/\(name)/\(path)") }

    /// The base URL; only its host and port receive credentials.
    var root: String { "\(isPlain ? "http" : "https")://\(host)/v2" }

    /// Returns whether an address has a registry scheme.
    package static func isRegistryAddress(_ text: String) -> Bool {
        let lower = text.lowercased()
        return lower.hasPrefix(scheme) || lower.hasPrefix(plainScheme)
    }

    package static func parse(_ address: Address) throws -> (repository: Repository, tag: String?) {
        let text = address.withSecrets
        let isPlain = text.lowercased().hasPrefix(plainScheme)
        let rest = text.dropFirst(isPlain ? plainScheme.count : scheme.count)
        let host = rest.prefix { $0 != "/" }
        func error(_ why: String, _ now: Advice) -> MoultError {
            MoultError(.location, .refused, what: "\(address) cannot be used", why: why, now: now)
        }
        if host.contains("@") {
            throw error("it contains a password", "Log in to the registry, for example with: skopeo login")
        }
        let path = rest.dropFirst(host.count).dropFirst()
        if path.contains("@") { throw error("it contains a digest", "Specify the repository, or a tag in it.") }
        let parts = path.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard isHost(host), let name = parts.first, isName(name) else {
            throw error("it is not a repository", "For example: oci://registry.example.org/team/phrasebook.")
        }
        let tag = parts.count > 1 ? String(parts[1]) : nil
        if let tag, !isTag(tag) { throw error("\"\(tag)\" is not a tag", "Specify the repository, or a tag in it.") }
        let repository = Repository(host: host.lowercased(), name: String(name), isPlain: isPlain)
        if isPlain, !isLoopback(repository.host) {
            throw error(
                "plain HTTP is for a registry on this machine only",
                "Use TLS: oci://\(repository.host)/\(repository.name)")
        }
        return (repository, tag)
    }

    private static func isHost(_ host: Substring) -> Bool {
        guard let first = host.first, first != ":" else { return false }
        return host.utf8.allSatisfy { isLetter($0 | 0x20) || isDigit($0) || ".-:[]".utf8.contains($0) }
    }

    private static func isName(_ name: Substring) -> Bool {
        name.utf8.count <= 255
            && name.pathParts(keepingEmpty: true).allSatisfy { part in
                guard let first = part.utf8.first, let last = part.utf8.last else { return false }
                return [first, last].allSatisfy { isLetter($0) || isDigit($0) }
                    && part.utf8.allSatisfy { isLetter($0) || isDigit($0) || "._-".utf8.contains($0) }
            }
    }

    package static func isTag(_ tag: String) -> Bool {
        guard let first = tag.utf8.first, tag.utf8.count <= 128, first != 0x2e, first != 0x2d else { return false }
        return tag.utf8.allSatisfy { isLetter($0 | 0x20) || isDigit($0) || "._-".utf8.contains($0) }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Returns whether a host is a loopback address.
    static func isLoopback(_ host: String) -> Bool {
        if host.hasPrefix("[::1]") { return true }
        let name = host.prefix { $0 != ":" }
        if name == "localhost" { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// One file in an artifact of a registry.
package struct RegistryFile: Sendable, Equatable {
    package let repository: Repository
    /// The tag of the artifact that contains this file.
    package let tag: String
    package let name: String
    /// The file's digest, if known: then the artifact need not be requested first.
    package var sha256: String?

    package init(repository: Repository, tag: String = feedTag, name: String, sha256: String? = nil) {
        (self.repository, self.tag, self.name, self.sha256) = (repository, tag, name, sha256)
    }

    /// The tag of the feed, its signatures and the key lists.
    package static let feedTag = "feed"
    /// The name of the feed's file.
    package static let feedName = "feed.json"
    /// A placeholder for the name of a release's manifest, if only the tag of the release is known.
    package static let release = "release.json"

    package var description: String { "\(address)" + (isHead ? "" : "/\(name)") }

    /// The address of the artifact, in the form that operators use.
    var address: Address { Address(tag == Self.feedTag ? "\(repository)" : "\(repository):\(tag)") }

    private var isHead: Bool { name == Self.feedName || name == Self.release }

    /// Returns another file of the same feed. The feed, its signatures and key lists are in the feed's artifact, other files in
    /// the artifact with the given tag, or without a tag in the same artifact as this file.
    func beside(_ name: String, sha256: String?, tag: String?) -> RegistryFile {
        let isOfFeed = name == Self.feedName || name.hasPrefix("\(Self.feedName).") || name.hasPrefix("keys-")
        return RegistryFile(
            repository: repository, tag: isOfFeed ? Self.feedTag : tag ?? self.tag, name: name, sha256: sha256)
    }

    /// Returns the tag of a release. Tags must not contain `+`, and versions never contain `_`.
    package static func tag(ofVersion version: String) -> String { version.replacing("+", with: "_") }
}
