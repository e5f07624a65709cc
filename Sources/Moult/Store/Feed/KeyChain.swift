package import MoultBasics
internal import MoultFiles
package import MoultTrust
internal import StepKit

/// The keys in effect: those pinned in the settings, or those of the newest key list that they lead to. Each list is signed by
/// keys of the previous one. Lists are kept in `.moult/keys`, separate from the feed, so that deleting the feed does not bring
/// back a revoked key. The seals of generations also record the number of the list, in case the lists are deleted as well.
package struct KeyChain {
    package private(set) var roles: KeyRoles
    /// The number of the list in effect; 0 for the pinned keys.
    package private(set) var serial = 0
    /// The lists that are not in `.moult/keys` yet, each after its signatures.
    package private(set) var new: [(name: String, bytes: [UInt8])] = []
    /// The first list next to the feed that the keys in effect did not sign.
    private var unproven: String?
    private let product: String
    private let layout: StoreLayout
    /// The number of the newest list under which a release of this store was installed, with the same pinned keys.
    private let floor: Int

    /// The search stops after this number of consecutive lists without enough valid signatures, because some servers return a
    /// page for every URL.
    private static let maxUnsigned = 16

    /// Reads the store's lists, and ignores those that do not follow from the pinned keys.
    package init(pinned: TrustedKeys, product: String, in layout: StoreLayout) throws {
        roles = KeyRoles(all: pinned)
        (self.product, self.layout) = (product, layout)
        floor = try Self.floor(pinned, layout)
        // Earlier versions saved the lists next to the feed.
        for directory in [layout.keys, layout.feed] {
            let names = try Files.list(directory)
            for serial in 1...KeyList.maxLists where serial > self.serial && names.contains(KeyList.fileName(serial)) {
                // The list was valid when it arrived; the keys' expiry only matters for lists that arrive from now on.
                _ = try adopt(serial, at: Timestamp(seconds: 0), isNew: directory != layout.keys) { name, limit in
                    try Files.read("\(directory)/\(name)", limit: limit)
                }
            }
        }
    }

    /// Continues the chain with the lists next to a feed.
    package mutating func advance(now: Timestamp, find: (String, _ limit: Int) throws -> [UInt8]?) throws {
        var (next, unsigned) = (serial + 1, 0)
        while next <= KeyList.maxLists, unsigned < Self.maxUnsigned {
            guard let isProven = try adopt(next, at: now, isNew: true, find: find) else { break }
            // A list that the current keys did not sign may be older than the pinned keys, which may have signed a later one.
            unsigned = isProven ? 0 : unsigned + 1
            unproven = isProven ? nil : unproven ?? KeyList.fileName(next)
            next += 1
        }
    }

    /// Accepts the list with this number if the current keys signed it, and returns whether they did; nil if the list does not
    /// exist.
    private mutating func adopt(
        _ serial: Int, at time: Timestamp, isNew: Bool, find: (String, _ limit: Int) throws -> [UInt8]?
    ) throws -> Bool? {
        let name = KeyList.fileName(serial)
        guard let bytes = try find(name, KeyList.largest) else { return nil }
        var proofs: [(name: String, bytes: [UInt8])] = []
        let list = try KeyList(verifying: bytes, serial: serial, product: product, after: roles, named: name, at: time)
        { place in
            let file = try find(place, Provenance.largestSignature)
            if let file, !proofs.contains(where: { $0.name == place }) { proofs.append((place, file)) }
            return file
        }
        guard let list else { return false }
        (roles, self.serial) = (list.roles, serial)
        if isNew { new += proofs + [(name, bytes)] }
        return true
    }

    package func keep() throws {
        if new.isEmpty { return }
        try Files.ensureDirectory(layout.keys)
        for file in new { try Files.replace("\(layout.keys)/\(file.name)", with: file.bytes) }
    }

    /// Throws if these keys must not be used because they have expired, or because the store knew a newer list.
    func requireCurrent(at now: Timestamp = .now) throws {
        guard serial >= floor else {
            throw MoultError(
                .distrusted, .refused, what: "the key list \(KeyList.fileName(floor)) of \(product) is missing",
                why: "this store has installed releases under that key list, and the list may revoke keys",
                now:
                    "Get \(KeyList.fileName(floor)) and its signatures from the publisher, and put them into \(layout.keys)."
            )
        }
        guard let expires = roles.expires, expires < now else { return }
        throw MoultError(
            .expiredKey, .refused, what: "the keys of \(product) have expired",
            why: "\(KeyList.fileName(serial)), the newest key list that this store has, expired at \(expires)",
            now: "Ask the publisher for a newer key list, then run: " + "\(moult: "check", "--store", layout.root)")
    }

    /// Verifies a file with the keys of a role, and returns the signing keys.
    package func verify(
        _ bytes: [UInt8], named name: String, by keys: TrustedKeys, at now: Timestamp = .now,
        find: (String) throws -> [UInt8]?
    ) throws -> [KeyID] {
        do { return try keys.verify(bytes, named: name, at: now, find: find) } catch var error as MoultError {
            // Keys from a list are in effect instead of those in the operator's settings.
            if serial > 0, error.code == .unknownKey {
                error.now =
                    "Ask the publisher for a file signed with its current keys, which are listed in \(layout.keys)/\(KeyList.fileName(serial))."
            }
            // A store without a list gets it from a feed, which shows which list is the newest.
            let feed = "\(Files.directory(of: name))/\(Feed.fileName)"
            let first = "\(Files.directory(of: name))/\(KeyList.fileName(1))"
            if serial == 0, error.code == .unknownKey, try Files.factsThroughLinks(first) != nil,
                try Files.factsThroughLinks(feed) != nil
            {
                error.now =
                    "The key lists in the same directory may allow that key; the store gets them from the feed: "
                    + "\(moult: "apply", "--feed", feed)"
            }
            if let unproven, error.code == .unknownKey {
                error.now =
                    "\(unproven), the next key list, may contain that key, but is not signed by a trusted key either. "
                    + "Ask the publisher to restore \(unproven) and its signatures."
            }
            throw error
        }
    }

    /// The keys under which a generation was installed, from its seal.
    package struct Mark: Sendable, Equatable {
        /// The pinned keys: different keys start a different chain of lists.
        package var pinned: String
        package var list: Int
    }

    /// Returns the mark for the seal of a new release; nil without keys.
    package static func mark(_ settings: Settings, in layout: StoreLayout) throws -> Mark? {
        guard let keys = settings.keys else { return nil }
        let chain = try KeyChain(pinned: keys, product: settings.product, in: layout)
        return Mark(pinned: try keys.fingerprint, list: chain.serial)
    }

    private static func floor(_ pinned: TrustedKeys, _ layout: StoreLayout) throws -> Int {
        let fingerprint = try pinned.fingerprint
        return try Generation.names(layout).reduce(0) { floor, name in
            // A seal that cannot be read is ignored; `moult status --deep` reports it.
            let path = "\(layout.generation(name))/\(Seal.fileName)"
            guard let bytes = try? Files.read(path, limit: 1 << 24),
                let mark = (try? Seal(parsing: bytes, source: path))?.keys, mark.pinned == fingerprint
            else { return floor }
            return max(floor, mark.list)
        }
    }
}
