package import MoultBasics
internal import MoultFiles
package import MoultTrust

/// The keys that count now: those pinned in the settings, and the lists that have taken their place since, each signed
/// by keys of the one before.
package struct KeyChain {
    package private(set) var keys: TrustedKeys
    private(set) var serial = 0
    /// The lists that came in now, with the files that prove them, for keeping.
    package private(set) var new: [(name: String, bytes: [UInt8])] = []
    let product: String

    /// More than any publisher changes keys, and an end for a server that always has another list.
    private static let most = 256
    /// Lists in a row that none of our keys signed: some servers answer any question with a page.
    private static let mostStrange = 16

    /// What the store has; a list that the pinned keys do not lead to any more counts no longer.
    package init(pinned: TrustedKeys, product: String, in layout: StoreLayout) throws {
        keys = pinned
        self.product = product
        let names = try Files.list(layout.feed)
        for serial in 1...Self.most where names.contains(KeyList.fileName(serial)) {
            let name = "\(layout.feed)/\(KeyList.fileName(serial))"
            guard let bytes = try Files.read(name, limit: KeyList.largest) else { continue }
            // It was proven in time when it came; the keys' own end is for what comes from now on.
            let isProven = try proves(bytes, name, at: Timestamp(seconds: 0)) {
                try Files.read($0, limit: Provenance.largestSignature)
            }
            if isProven { try adopt(bytes, name) }
        }
    }

    /// Goes on with the lists that lie beside a feed.
    package mutating func advance(now: Timestamp, find: (String, _ limit: Int) throws -> [UInt8]?) throws {
        var (next, strange) = (serial + 1, 0)
        while next <= Self.most, strange < Self.mostStrange,
            let bytes = try find(KeyList.fileName(next), KeyList.largest)
        {
            let name = KeyList.fileName(next)
            var proofs: [(String, [UInt8])] = []
            let isProven = try proves(bytes, name, at: now) { place in
                let file = try find(place, Provenance.largestSignature)
                if let file { proofs.append((place, file)) }
                return file
            }
            // One that our keys say nothing about may be older than what was pinned: a later one may be for us.
            if isProven {
                try adopt(bytes, name)
                new += [(name, bytes)] + proofs.map { (name: $0, bytes: $1) }
                strange = 0
            } else {
                strange += 1
            }
            next += 1
        }
    }

    private func proves(
        _ bytes: [UInt8], _ name: String, at time: Timestamp, find: (String) throws -> [UInt8]?
    ) throws -> Bool {
        do {
            _ = try keys.prove(bytes, named: name, at: time, find: find)
            return true
        } catch let error as MoultError {
            // Whoever cannot be asked has not said anything about keys.
            if error.outcome != .refused { throw error }
            return false
        }
    }

    private mutating func adopt(_ bytes: [UInt8], _ name: String) throws {
        let list = try KeyList(parsing: bytes, source: name)
        guard list.product == product, KeyList.fileName(list.serial) == Files.name(of: name) else {
            throw MoultError(
                .feed, .refused, what: "\(name) is the list \(list.serial) of the keys of \(list.product)",
                why: "it lies where another one must be", now: "Tell the publisher.")
        }
        (keys, serial) = (list.keys, list.serial)
    }
}
