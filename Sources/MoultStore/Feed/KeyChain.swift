package import MoultBasics
internal import MoultFiles
package import MoultTrust
internal import StepKit

/// The keys that count now: those pinned in the settings, or those of the newest key list that they lead to. Each list is
/// signed by keys of the one before.
///
/// Lists are kept in `.moult/keys`, apart from what is kept of the feed: a revoked key must not come back when that is
/// deleted. The seals of generations say how far the store had come, in case the lists are gone, too.
package struct KeyChain {
    package private(set) var roles: KeyRoles
    /// Of the list that counts; 0 as long as the pinned keys do.
    package private(set) var serial = 0
    /// The lists that are not in `.moult/keys` yet, each after the signatures that prove it.
    package private(set) var new: [(name: String, bytes: [UInt8])] = []
    private let product: String
    private let layout: StoreLayout
    /// The newest list that a release of this store came under, by the same pinned keys.
    private let floor: Int

    /// Lists in a row that none of our keys signed: some servers answer any question with a page.
    private static let mostStrange = 16

    /// The store's lists; a list that no longer follows from the pinned keys does not count.
    package init(pinned: TrustedKeys, product: String, in layout: StoreLayout) throws {
        roles = KeyRoles(all: pinned)
        (self.product, self.layout) = (product, layout)
        floor = try Self.floor(pinned, layout)
        // Earlier versions kept them beside the feed.
        for directory in [layout.keys, layout.feed] {
            let names = try Files.list(directory)
            for serial in 1...KeyList.most where serial > self.serial && names.contains(KeyList.fileName(serial)) {
                // It was proven in time when it came; the keys' own end is for what comes from now on.
                _ = try adopt(serial, at: Timestamp(seconds: 0), isNew: directory != layout.keys) { name, limit in
                    try Files.read("\(directory)/\(name)", limit: limit)
                }
            }
        }
    }

    /// Continues with the lists beside a feed.
    package mutating func advance(now: Timestamp, find: (String, _ limit: Int) throws -> [UInt8]?) throws {
        var (next, strange) = (serial + 1, 0)
        while next <= KeyList.most, strange < Self.mostStrange {
            guard let isProven = try adopt(next, at: now, isNew: true, find: find) else { break }
            // One that our keys say nothing about may be older than what was pinned: a later one may be for us.
            strange = isProven ? 0 : strange + 1
            next += 1
        }
    }

    /// Accepts the list of this serial if the present keys signed it, and says whether they did; nil if it does not exist.
    private mutating func adopt(
        _ serial: Int, at time: Timestamp, isNew: Bool, find: (String, _ limit: Int) throws -> [UInt8]?
    ) throws -> Bool? {
        let name = KeyList.fileName(serial)
        guard let bytes = try find(name, KeyList.largest) else { return nil }
        var proofs: [(name: String, bytes: [UInt8])] = []
        let list = try KeyList(
            proving: bytes, serial: serial, product: product, after: roles, named: name, at: time
        ) { place in
            let file = try find(place, Provenance.largestSignature)
            if let file, !proofs.contains(where: { $0.name == place }) { proofs.append((place, file)) }
            return file
        }
        guard let list else { return false }
        (roles, self.serial) = (list.roles, serial)
        if isNew { new += proofs + [(name, bytes)] }
        return true
    }

    /// Keeps the lists that came now.
    package func keep() throws {
        if new.isEmpty { return }
        try Files.ensureDirectory(layout.keys)
        for file in new { try Files.replace("\(layout.keys)/\(file.name)", with: file.bytes) }
    }

    /// Throws if these keys must not be used: their time is over, or the store knew a newer list.
    package func proveCurrent(at now: Timestamp = .now) throws {
        guard serial >= floor else {
            throw MoultError(
                .distrusted, .refused, what: "the key list \(KeyList.fileName(floor)) of \(product) is missing",
                why: "releases of this store were installed under it, and it may revoke keys",
                now:
                    "Get \(KeyList.fileName(floor)) and its signatures from the publisher, and put them into \(layout.keys)."
            )
        }
        guard let expires = roles.expires, expires < now else { return }
        throw MoultError(
            .expiredKey, .refused, what: "the keys of \(product) have expired",
            why: "\(KeyList.fileName(serial)), the newest key list that this store has, expired at \(expires)",
            now: "Ask the publisher for a newer key list, then run: "
                + shellLine(["moult", "check", "--store", layout.root]))
    }

    /// Proves a file by keys of a role, and says which signed it.
    package func prove(
        _ bytes: [UInt8], named name: String, by keys: TrustedKeys, at now: Timestamp = .now,
        find: (String) throws -> [UInt8]?
    ) throws -> [KeyID] {
        do { return try keys.prove(bytes, named: name, at: now, find: find) } catch var error as MoultError {
            // The operator's settings do not say any more which keys count.
            if serial > 0, error.code == .unknownKey {
                error.now =
                    "Ask the publisher for a file that its present keys signed; they are in \(layout.keys)/\(KeyList.fileName(serial))."
            }
            // A store that has no list yet learns them from a feed, which says which is the newest one.
            let feed = "\(Files.directory(of: name))/\(Feed.fileName)"
            let first = "\(Files.directory(of: name))/\(KeyList.fileName(1))"
            if serial == 0, error.code == .unknownKey, try Files.factsThroughLinks(first) != nil,
                try Files.factsThroughLinks(feed) != nil
            {
                error.now =
                    "Key lists lie beside it, for stores that follow the feed: "
                    + shellLine(["moult", "apply", "--feed", feed])
            }
            throw error
        }
    }

    /// The keys under which a generation was installed, from its seal.
    package struct Mark: Sendable, Equatable {
        /// The pinned keys: other keys begin other lists.
        package var pinned: String
        package var list: Int
    }

    /// The text for the seal of a new release; nil without keys.
    package static func mark(_ settings: Settings, in layout: StoreLayout) throws -> Mark? {
        guard let keys = settings.keys else { return nil }
        let chain = try KeyChain(pinned: keys, product: settings.product, in: layout)
        return Mark(pinned: try keys.fingerprint, list: chain.serial)
    }

    private static func floor(_ pinned: TrustedKeys, _ layout: StoreLayout) throws -> Int {
        let fingerprint = try pinned.fingerprint
        return try Generation.names(layout).reduce(0) { floor, name in
            // A seal that cannot be read says nothing; `verify` reports it.
            let path = "\(layout.generation(name))/\(Seal.fileName)"
            guard let bytes = try? Files.read(path, limit: 1 << 24),
                let mark = (try? Seal(parsing: bytes, source: path))?.keys, mark.pinned == fingerprint
            else { return floor }
            return max(floor, mark.list)
        }
    }
}
