package import MoultBasics
internal import MoultFiles
internal import MoultTransport
internal import MoultTrust
package import StepKit

/// Fetches the current feed and accepts it only if it has the signatures that the store requires, is for this product, has not
/// expired, and, unless `allowOlder` is set, is not older than the last feed that the store has seen. Writes nothing.
struct FeedReader {
    let layout: StoreLayout
    let settings: Settings
    let places: [Location]
    var transport: Transport
    /// Whether an unsigned feed from the network is accepted.
    let allowUnsigned: Bool
    let isConfigured: Bool
    let allowOlder: Bool
    var content: ReleaseSource.Content?
    var now = Timestamp.now
    /// The longest time that the clocks of a publisher and a store may differ, in seconds.
    private static let clockDifference = 86_400

    struct Current {
        let feed: Feed
        let place: Location
        let provenance: Provenance
        /// The keys in effect; nil if the store trusts none.
        let keys: KeyChain?
        let seen: ReplayGuard
        /// Files to save: the feed and its signatures; empty if they are saved already.
        var files: [(name: String, bytes: [UInt8])] = []
    }

    /// Returns the first valid feed; tries the locations in order.
    /// `keep` receives new key lists as soon as they are verified, whatever happens to the feed: the keys they revoke must not
    /// be trusted again.
    func ask(keep: (KeyChain) throws -> Void = { _ in }) throws -> Current {
        var faults: [MoultError] = []
        for (index, place) in places.enumerated() {
            var reader = self
            reader.transport = transport.share(of: places.count - index)
            do { return try reader.ask(place, keep) } catch let error as MoultError {
                if error.code == .interrupted { throw error }
                faults.append(error)
            }
        }
        // An invalid response is more informative than the failure of another location.
        throw faults.first { $0.outcome == .refused } ?? faults.first
            ?? MoultError(.noFeed, .refused, what: "no feed is configured")
    }

    private func ask(_ place: Location, _ keep: (KeyChain) throws -> Void) throws -> Current {
        if settings.keys == nil, !place.isLocal, !allowUnsigned { throw unsigned(place) }
        var seen = try ReplayGuard.read(layout)
        let kept = try keptFeed(seen, of: place)
        var chain = try settings.keys.map { try KeyChain(pinned: $0, product: settings.product, in: layout) }
        guard var (bytes, tag) = try content(of: place, seen) ?? read(place, unless: kept == nil ? nil : seen.tag)
        else {
            try chain?.requireCurrent(at: now)
            let provenance = try verify(kept ?? [], named: savedFeed, chain) {
                try Files.read($0, limit: Provenance.largestSignature)
            }
            return Current(
                feed: try accept(kept ?? [], place, seen, chain), place: place, provenance: provenance,
                keys: chain, seen: seen)
        }
        let known = chain?.serial
        try chain?.advance(now: now) { try fetch($0, $1, beside: place) }
        if let chain {
            try keep(chain)
            // Publishers replace the feed before they add a key list, so the feed just read may be older than the list.
            if chain.serial != known, let again = try read(place, unless: nil) { (bytes, tag) = again }
            try chain.requireCurrent(at: now)
        }
        var files: [(name: String, bytes: [UInt8])] = []
        let provenance = try verify(bytes, at: place, chain) { files.append(($0, $1)) }
        let feed = try accept(bytes, place, seen, chain)
        (seen.serial, seen.url, seen.tag) = (feed.serial, place.description, tag)
        (seen.keyList, seen.sha256) = (chain?.serial, try SHA256.digest(of: bytes).hex)
        return Current(
            feed: feed, place: place, provenance: provenance, keys: chain, seen: seen,
            files: files + [(Feed.fileName, bytes)])
    }

    /// Returns what this command has read from a location already; nil if the store has seen a newer feed since.
    private func content(of place: Location, _ seen: ReplayGuard) -> (bytes: [UInt8], tag: String?)? {
        guard let content, content.transport != nil, content.address == place.address else { return nil }
        // If the content cannot be parsed, the error of the check that follows says why.
        let feed = try? Feed(parsing: content.bytes, source: place.description)
        return feed.map { $0.serial < seen.serial } ?? false ? nil : (content.bytes, content.tag)
    }

    /// Returns the feed's bytes and the server's tag for them; nil if the tag is unchanged.
    private func read(_ place: Location, unless tag: String?) throws -> (bytes: [UInt8], tag: String?)? {
        switch try transport.read(place, limit: Feed.largest, unless: tag) {
        case .nothing:
            throw MoultError(
                .notThere, what: "no feed at \(place)", why: "it does not exist",
                now: isConfigured ? "Check \"feed\" in \(layout.settings)." : "Check the address of the feed.")
        case .unchanged: return nil
        case .bytes(let bytes, let tag):
            if !place.isLocal, Self.isPage(bytes) {
                throw MoultError(
                    .unreachable, .busy, what: "cannot get \(place)",
                    why: "the answer is an HTML page, as of a network that asks for a login, or of a proxy",
                    now: "Open the address in a browser on this machine, or try again on another network.")
            }
            return (bytes, tag)
        }
    }

    private static func isPage(_ bytes: [UInt8]) -> Bool {
        let start = bytes.prefix(256).drop { $0 <= 0x20 || $0 >= 0x80 }.prefix(14)
        let text = String(start.map { Character(Unicode.Scalar($0)) }).lowercased()
        return text.hasPrefix("<!doctype html") || text.hasPrefix("<html")
    }

    /// Returns the saved feed, if it is the one to which the saved tag for this location refers.
    private func keptFeed(_ seen: ReplayGuard, of place: Location) throws -> [UInt8]? {
        seen.tag != nil && seen.url == place.description ? try keptFeed(seen) : nil
    }

    private var savedFeed: String { "\(layout.feed)/\(Feed.fileName)" }

    private func keptFeed(_ seen: ReplayGuard) throws -> [UInt8]? {
        guard let bytes = try Files.read(savedFeed, limit: Feed.largest),
            try SHA256.digest(of: bytes).hex == seen.sha256
        else { return nil }
        return bytes
    }

    /// Returns whether keys of the chain have signed the last feed that this store has seen.
    private func isSigned(_ seen: ReplayGuard, by chain: KeyChain?) throws -> Bool {
        guard let chain, let bytes = try keptFeed(seen) else { return false }
        do {
            _ = try chain.verify(bytes, named: savedFeed, by: chain.roles.feed, at: now) {
                try Files.read($0, limit: Provenance.largestSignature)
            }
            return true
        } catch is MoultError { return false }
    }

    private func fetch(_ name: String, _ limit: Int, beside place: Location) throws -> [UInt8]? {
        switch try transport.read(place.beside(name), limit: limit) {
        case .bytes(let bytes, _): bytes
        case .nothing, .unchanged: nil
        }
    }

    // MARK: verification

    /// Verifies a manifest at its own location, without a feed; `keep` receives new key lists.
    func provenance(ofManifest bytes: [UInt8], at place: Location, keep: (KeyChain) throws -> Void) throws -> Provenance
    {
        guard let pinned = settings.keys else {
            if !place.isLocal, !allowUnsigned { throw unsigned(place) }
            return Provenance(unproven: place.name) { try fetch($0, Provenance.largestSignature, beside: place) }
        }
        var chain = try KeyChain(pinned: pinned, product: settings.product, in: layout)
        try chain.advance(now: now) { try fetch($0, $1, beside: place) }
        try keep(chain)
        try chain.requireCurrent(at: now)
        return try provenance(ofManifest: bytes, at: place, by: chain)
    }

    func provenance(ofManifest bytes: [UInt8], at place: Location, by keys: KeyChain) throws -> Provenance {
        do {
            return .signed(
                try keys.verify(bytes, named: place.name, by: keys.roles.release, at: now) {
                    try fetch($0, Provenance.largestSignature, beside: place)
                })
        } catch let error as MoultError { throw Self.error(error, about: place) }
    }

    /// Returns an error that says where the file is: mirrors have files of the same name.
    private static func error(_ error: MoultError, about place: Location) -> MoultError {
        // In a registry, the files of a feed have no addresses of their own.
        if case .registry = place { return error }
        func placed(_ text: String) -> String {
            text.contains("\(place)") ? text : text.replacing(place.name, with: "\(place)")
        }
        var error = error
        (error.what, error.why) = (placed(error.what), error.why.map(placed))
        return error
    }

    private func verify(
        _ bytes: [UInt8], at place: Location, _ keys: KeyChain?, keep: (String, [UInt8]) -> Void
    ) throws -> Provenance {
        func attempt(_ name: String) throws -> Provenance {
            var found: [(String, [UInt8])] = []
            let provenance = try verify(bytes, named: name, keys) { file in
                let signature = try fetch(file, Provenance.largestSignature, beside: place)
                // Another user may have put a link to a file of this user there, so only signatures are kept.
                if let signature, (try? Signature(file: signature, named: file)) != nil {
                    found.append((Feed.fileName + file.dropFirst(name.count), signature))
                }
                return signature
            }
            for (name, bytes) in found { keep(name, bytes) }
            return provenance
        }
        do { return try attempt(place.name) } catch let error as MoultError {
            // The publisher may be replacing feed and signature at this moment, so each signature is also stored under the
            // digest of its feed. If that does not match either, the first error is reported.
            let other = try? attempt(FeedNames.ofSignatures(place.name, digest: SHA256.digest(of: bytes).hex))
            if let other { return other }
            throw Self.error(error, about: place)
        }
    }

    private func verify(
        _ bytes: [UInt8], named name: String, _ keys: KeyChain?, find: (String) throws -> [UInt8]?
    ) throws -> Provenance {
        guard let keys else { return Provenance(unproven: name, find: find) }
        return .signed(try keys.verify(bytes, named: name, by: keys.roles.feed, at: now, find: find))
    }

    /// Checks what a signature does not prove: that the feed is for this store, and that it is current.
    private func accept(_ bytes: [UInt8], _ place: Location, _ seen: ReplayGuard, _ chain: KeyChain?) throws -> Feed {
        let feed = try Feed(parsing: bytes, source: place.description)
        guard feed.product == settings.product else {
            throw distrust(
                "\(place) is the feed of \(feed.product)", "the store \(layout.root) holds \(settings.product)",
                "Use the feed of that product\(isConfigured ? " in \(layout.settings)" : "").")
        }
        let list = chain?.serial ?? 0
        if let made = feed.keyList, made < list {
            throw distrust(
                "\(place) was signed under key list \(made), which key list \(list) has replaced", nil,
                "An attacker may be withholding a newer feed: ask the publisher, or use another mirror.")
        }
        // A newer key list restarts the serials, so that a stolen key cannot exhaust them for good. If the keys of the new list have
        // signed the last feed, too, its serial still counts: otherwise the server could send an older feed with the new list.
        var seen = seen
        if list > seen.keyList ?? list, try !isSigned(seen, by: chain) { (seen.serial, seen.sha256) = (0, nil) }
        if feed.serial < seen.serial, !allowOlder {
            throw distrust(
                "\(place) is older than a feed seen before",
                "its serial is \(feed.serial), and this store has seen serial \(seen.serial)",
                "An attacker may be withholding newer releases. If the publisher started the feed over, "
                    + "use \(commandLine: "--allow-downgrade", app: "follow: .match").")
        }
        if feed.serial == seen.serial, let digest = seen.sha256, try SHA256.digest(of: bytes).hex != digest, !allowOlder
        {
            throw distrust(
                "\(place) differs from the feed seen before",
                "both have serial \(feed.serial), but each feed must have its own serial",
                "Report this to the publisher.")
        }
        guard feed.serial - seen.serial <= Feed.serialRange else {
            throw distrust(
                "\(place) has serial \(feed.serial)",
                seen.serial == 0
                    ? "this store has seen no feed, and the first serial may be at most \(Feed.serialRange)"
                    : "the last serial was \(seen.serial), and the next may be at most \(Feed.serialRange) higher",
                "If the publisher chose this serial, a new key list can reset it: \(moult: "help", "keys")")
        }
        if let created = feed.created, created.seconds > now.seconds + Self.clockDifference {
            throw distrust(
                "\(place) was made in the future", "at \(created), and the clock of this machine shows \(now)",
                "Correct the clock. If it is right, report this to the publisher.")
        }
        guard now <= feed.expires else {
            throw distrust(
                "\(place) has expired",
                "it was valid until \(feed.expires), and the clock of this machine shows \(now)",
                "If the clock is right, an attacker may be withholding a newer feed: ask the publisher, or use another mirror."
            )
        }
        return feed
    }

    private func distrust(_ what: String, _ why: String?, _ now: Advice) -> MoultError {
        MoultError(.distrusted, .refused, what: what, why: why, now: now)
    }

    private func unsigned(_ place: Location) -> MoultError {
        MoultError(
            .distrusted, .refused, what: "\(place) cannot be verified", why: "the store \(layout.root) trusts no key",
            now: "Add the publisher's key to \"keys\" in \(layout.settings), or use --allow-unsigned this time.")
    }
}

package struct FeedRequest: Sendable {
    package var place: Address?
    private(set) var content: ReleaseSource.Content?
    package var allowUnsigned: Bool
    /// How a release of the feed may be installed; whether an older feed is accepted.
    package var update: UpdateRequest
    package var version: Version?
    /// Whether the files are only downloaded, for a later update.
    package var downloadsOnly = false

    package init(_ update: UpdateRequest = UpdateRequest(), place: Address? = nil, allowUnsigned: Bool = false) {
        (self.update, self.place, self.allowUnsigned) = (update, place, allowUnsigned)
    }

    /// Returns the same request for another location, whose content was read to find out what it is.
    package func at(_ content: ReleaseSource.Content) -> FeedRequest {
        var request = self
        (request.place, request.content) = (content.address, content)
        return request
    }
}
