package import MoultBasics
internal import MoultFiles

/// The location of a file: on this machine, a web server or a registry. Its description contains no secrets.
package enum Location: Sendable, Equatable, CustomStringConvertible {
    case file(String)
    case web(Address)
    case registry(RegistryFile)

    /// Parses a path, a `file:`, `http:` or `https:` URL, or a repository in a registry, with an optional tag.
    package init(_ address: Address) throws {
        let text = address.withSecrets
        let lower = text.lowercased()
        if lower.hasPrefix("http:") || lower.hasPrefix("https:") {
            try Self.check(address)
            self = .web(Self.ofFeed(address))
        } else if Repository.isRegistryAddress(text) {
            let (repository, tag) = try Repository.parse(address)
            let isRelease = tag != nil && tag != RegistryFile.feedTag
            self = .registry(
                RegistryFile(
                    repository: repository, tag: tag ?? RegistryFile.feedTag,
                    name: isRelease ? RegistryFile.release : RegistryFile.feedName))
        } else if lower.hasPrefix("file://") {
            self = .file(try Self.path(of: text))
        } else if let colon = text.firstRange(of: "://") {
            throw Self.error(
                "\(address)", "it has the scheme \(text[..<colon.lowerBound])",
                "Use a path, or a URL with file:, http:, https: or oci:.")
        } else {
            self = .file(try Files.absolute(text))
        }
    }

    package init(_ text: String) throws { try self.init(Address(text)) }

    /// Returns the URL of a feed: the feed's file name is appended to the URL of a directory or host.
    private static func ofFeed(_ address: Address) -> Address {
        let url = address.withSecrets
        let isHost = url.drop { $0 != ":" }.dropFirst(3).allSatisfy { $0 != "/" && $0 != "?" && $0 != "#" }
        if isHost { return Address("\(url)/\(RegistryFile.feedName)") }
        return url.endsWithSlash ? Address(url + RegistryFile.feedName) : address
    }

    private static func check(_ address: Address) throws {
        let url = address.withSecrets
        let rest = url.drop { $0 != ":" }.dropFirst()
        let host = rest.dropFirst(2).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        // Process lists and shell histories would show the password.
        if host.contains("@") {
            throw error(
                "\(address)", "it contains a password", "Put the name and password for this host into ~/.netrc.")
        }
        guard rest.hasPrefix("//"), !host.isEmpty, url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            throw error("\(address)", "it is not a URL", "For example: https://example.org/releases/feed.json.")
        }
    }

    private static func path(of url: String) throws -> String {
        let rest = url.dropFirst("file://".count)
        let path = rest.hasPrefix("localhost/") ? rest.dropFirst("localhost".count) : rest
        guard path.isAbsolutePath else { throw error(url, "it has no absolute path", "For example: file:///srv/x.") }
        var bytes: [UInt8] = []
        var left = Array(path.utf8)[...]
        while let byte = left.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard left.count >= 2, let value = UInt8(String(decoding: left.prefix(2), as: UTF8.self), radix: 16) else {
                throw error(
                    url, "a % in the URL is not followed by two hexadecimal digits", "Write a literal % as %25.")
            }
            bytes.append(value)
            left = left.dropFirst(2)
        }
        guard let path = OutsideText.valid(bytes) else {
            throw error(url, "its path is not valid UTF-8: \(OutsideText.shown(bytes))", "Rename the file.")
        }
        return path
    }

    private static func error(_ text: String, _ why: String, _ now: Advice) -> MoultError {
        MoultError(.location, .refused, what: "\(text) cannot be used", why: why, now: now)
    }

    package var address: Address {
        switch self {
        case .file(let path): Address(path)
        case .web(let address): address
        case .registry(let file): file.address
        }
    }

    /// Whether this is a file on this machine.
    package var isLocal: Bool { if case .file = self { true } else { false } }

    package var description: String {
        switch self {
        case .file(let path): path
        case .web(let address): "\(address)"
        case .registry(let file): file.description
        }
    }

    /// The last component of the location's path.
    package var name: String {
        switch self {
        case .file(let path): Files.name(of: path)
        case .web(let address): Files.name(of: String(address.withSecrets.prefix { $0 != "?" && $0 != "#" }))
        case .registry(let file): file.name
        }
    }

    /// Returns the location of the file with this plain name next to this one. In a registry, the file is found by its digest,
    /// or in the artifact of the release.
    package func beside(_ name: String, sha256: String? = nil, ofVersion version: String? = nil) -> Location {
        switch self {
        case .registry(let file):
            return .registry(file.beside(name, sha256: sha256, tag: version.map { RegistryFile.tag(ofVersion: $0) }))
        case .file(let path): return .file("\(Files.directory(of: path))/\(name)")
        case .web(let address):
            let url = address.withSecrets
            let end = url.firstIndex { $0 == "?" || $0 == "#" } ?? url.endIndex
            // The query is kept, because it may contain a token that is needed for all files.
            let query = url[end...].prefix { $0 != "#" }
            let path = url[..<end]
            let scheme = path.firstRange(of: "://")?.upperBound ?? path.startIndex
            guard let slash = path.lastSlash, slash >= scheme else { return .web(Address("\(path)/\(name)\(query)")) }
            return .web(Address("\(path[...slash])\(name)\(query)"))
        }
    }
}
