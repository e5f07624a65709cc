internal import Glibc
package import MoultBasics
package import MoultEngine
internal import MoultFiles
internal import MoultStore
internal import MoultTransport
internal import MoultTrust
package import StepKit

extension MoultError.Code {
    /// A feed that must not be believed: of another product, older than one seen before, or past its time.
    package static let distrusted = Self(261)
    /// The store follows no feed.
    package static let noFeed = Self(262)
}

/// Asks for the present feed, and believes it only if all of this holds: signed, of this product, not older than one
/// seen before, not past its time. Writes nothing.
struct FeedReader {
    let layout: StoreLayout
    let settings: Settings
    let places: [Location]
    var transport: Transport
    /// A feed over the network that nobody signed is taken all the same.
    let allowUnsigned: Bool
    /// An older feed than one seen before is taken all the same.
    let allowOlder: Bool
    var now = Timestamp.now

    /// A feed that may be believed.
    struct Current {
        let feed: Feed
        let place: Location
        let provenance: Provenance
        let seen: ReplayGuard
        /// What shall be kept: the feed and the files that prove it; nothing if it is kept already.
        var files: [(name: String, bytes: [UInt8])] = []
    }

    /// The feed from the first place that has one to believe.
    func ask() throws -> Current {
        var faults: [MoultError] = []
        for (index, place) in places.enumerated() {
            var reader = self
            reader.transport = transport.share(of: places.count - index)
            do { return try reader.ask(place) } catch let error as MoultError {
                if error.code == .interrupted { throw error }
                faults.append(error)
            }
        }
        // What was wrong with an answer says more than that another place gave none.
        throw faults.first { $0.outcome == .refused } ?? faults.first
            ?? MoultError(.noFeed, .refused, what: "no feed is named")
    }

    private func ask(_ place: Location) throws -> Current {
        if settings.keys == nil, place.isWeb, !allowUnsigned { throw unsigned(place) }
        var seen = try ReplayGuard.read(layout)
        let kept = try keptFeed(seen, of: place)
        switch try transport.read(place, limit: Feed.largest, unless: kept == nil ? nil : seen.tag) {
        case .nothing:
            throw MoultError(
                .notThere, what: "there is no feed at \(place)", why: "nothing is there",
                now: "Look at \"feed\" in \(layout.settings).")
        case .unchanged:
            let provenance = try prove(kept ?? [], named: "\(layout.feed)/\(Feed.fileName)", keptKeys()) {
                try Files.read($0, limit: Provenance.largestSignature)
            }
            return Current(
                feed: try believe(kept ?? [], place, seen), place: place, provenance: provenance, seen: seen)
        case .bytes(let bytes, let tag):
            var files: [(name: String, bytes: [UInt8])] = []
            var chain = try settings.keys.map { try KeyChain(pinned: $0, product: settings.product, in: layout) }
            try chain?.advance(now: now) { try fetch($0, $1, beside: place) }
            let provenance = try prove(bytes, at: place, chain?.keys) { files.append(($0, $1)) }
            let feed = try believe(bytes, place, seen)
            (seen.serial, seen.url, seen.tag) = (feed.serial, place.description, tag)
            seen.sha256 = try SHA256.digest(of: bytes).hex
            files += chain?.new ?? []
            return Current(
                feed: feed, place: place, provenance: provenance, seen: seen, files: files + [(Feed.fileName, bytes)])
        }
    }

    /// The feed that is kept, if it is the one that the tag of this place stands for.
    private func keptFeed(_ seen: ReplayGuard, of place: Location) throws -> [UInt8]? {
        guard seen.tag != nil, seen.url == place.description,
            let bytes = try Files.read("\(layout.feed)/\(Feed.fileName)", limit: Feed.largest),
            try SHA256.digest(of: bytes).hex == seen.sha256
        else { return nil }
        return bytes
    }

    private func keptKeys() throws -> TrustedKeys? {
        try settings.keys.map { try KeyChain(pinned: $0, product: settings.product, in: layout).keys }
    }

    private func fetch(_ name: String, _ limit: Int, beside place: Location) throws -> [UInt8]? {
        switch try transport.read(place.beside(name), limit: limit) {
        case .bytes(let bytes, _): bytes
        case .nothing, .unchanged: nil
        }
    }

    // MARK: proof

    private func prove(
        _ bytes: [UInt8], at place: Location, _ keys: TrustedKeys?, keep: (String, [UInt8]) -> Void
    ) throws -> Provenance {
        func attempt(_ name: String) throws -> Provenance {
            var found: [(String, [UInt8])] = []
            let provenance = try prove(bytes, named: name, keys) { file in
                let signature = try fetch(file, Provenance.largestSignature, beside: place)
                if let signature { found.append((Feed.fileName + file.dropFirst(name.count), signature)) }
                return signature
            }
            for (name, bytes) in found { keep(name, bytes) }
            return provenance
        }
        do { return try attempt(place.name) } catch let error as MoultError {
            // The publisher may be replacing feed and signature at this very moment: each feed has its signature under
            // its own digest, too. If that does not fit either, the first error is the one to report.
            let other = try? attempt(FeedNames.ofSignatures(place.name, digest: SHA256.digest(of: bytes).hex))
            if let other { return other }
            throw error
        }
    }

    private func prove(
        _ bytes: [UInt8], named name: String, _ keys: TrustedKeys?, find: (String) throws -> [UInt8]?
    ) throws -> Provenance {
        guard let keys else { return .unsigned }
        return .signed(try keys.prove(bytes, named: name, at: now, find: find))
    }

    /// What a signature does not prove: that it is for this store, and that it is the present one.
    private func believe(_ bytes: [UInt8], _ place: Location, _ seen: ReplayGuard) throws -> Feed {
        let feed = try Feed(parsing: bytes, source: place.description)
        guard feed.product == settings.product else {
            throw distrust(
                "\(place) is the feed of \(feed.product)", "the store \(layout.root) holds \(settings.product)",
                "Name the feed of that product in \(layout.settings).")
        }
        if feed.serial < seen.serial, !allowOlder {
            throw distrust(
                "\(place) is older than a feed seen before",
                "its serial is \(feed.serial), and \(seen.serial) was seen",
                "Somebody may hold back newer releases. If the publisher began anew, say --allow-downgrade.")
        }
        if feed.serial == seen.serial, let digest = seen.sha256, try SHA256.digest(of: bytes).hex != digest, !allowOlder
        {
            throw distrust(
                "\(place) is another feed than the one seen before",
                "both have serial \(feed.serial), which stands for one feed only", "Tell the publisher.")
        }
        guard now <= feed.expires else {
            throw distrust(
                "\(place) says nothing any more", "it was good until \(feed.expires)",
                "Somebody may hold back a newer one: ask the publisher, or name another mirror.")
        }
        return feed
    }

    private func distrust(_ what: String, _ why: String, _ now: String) -> MoultError {
        MoultError(.distrusted, .refused, what: what, why: why, now: now)
    }

    private func unsigned(_ place: Location) -> MoultError {
        MoultError(
            .distrusted, .refused, what: "\(place) cannot be proven", why: "the store \(layout.root) trusts no key",
            now: "Put the publisher's key into \"keys\" of \(layout.settings), or say --allow-unsigned this time.")
    }
}

/// Waiting, where the kernel has nothing that one could wait for.
enum Clock {
    static func pause(milliseconds: UInt32) { usleep(milliseconds * 1000) }
}

/// What somebody asks of a feed, and how it may be taken.
package struct FeedRequest: Sendable {
    /// Another feed than the settings name.
    package var place: Address?
    package var follow: Policy.Follow?
    package var allowDowngrade: Bool
    package var allowUnsigned: Bool
    package var app: Version?
    package var consent: Consent

    package init(
        place: Address? = nil, follow: Policy.Follow? = nil, allowDowngrade: Bool = false, allowUnsigned: Bool = false,
        app: Version? = nil, consent: Consent = Consent()
    ) {
        self.consent = consent
        (self.place, self.follow, self.app) = (place, follow, app)
        (self.allowDowngrade, self.allowUnsigned) = (allowDowngrade, allowUnsigned)
    }
}
