package import MoultBasics

/// The keys that a publisher's stores trust from now on: `keys-N.json` next to the feed, signed by keys of the previous
/// list.
///
/// Format 2 has the keys for each role, and an expiry time:
///
///     { "keyList": 2, "product": "org.example.app", "serial": 1, "expires": "2027-11-20T10:00:00Z",
///       "root": { "threshold": 1, "trusted": [ … ] }, "release": { … }, "timestamp": { … } }
///
/// Format 1 has one set of keys for all roles:
///
///     { "keyList": 1, "product": "org.example.app", "serial": 1, "threshold": 1, "trusted": [ … ] }
package struct KeyList: Sendable, Equatable {
    package static let format = 2
    package static let largest = 1 << 16
    /// The maximum number of lists, more than any publisher needs.
    package static let maxLists = 256

    /// The number of days before the expiry of a list from which publishers and operators are warned.
    package static let warningDays = 60

    package var product: String
    /// 1 for the list that replaces the keys pinned in stores, 2 for the next list, and so on.
    package var serial: Int
    package var roles: KeyRoles
    /// Whether the list has one set of keys for all roles (format 1).
    package var isPlain: Bool

    /// Creates a list of format 2.
    package init(product: String, serial: Int, roles: KeyRoles) {
        (self.product, self.serial, self.roles, isPlain) = (product, serial, roles, false)
    }

    /// Creates a list of format 1.
    package init(product: String, serial: Int, keys: TrustedKeys) {
        (self.product, self.serial, roles, isPlain) = (product, serial, KeyRoles(all: keys), true)
    }

    package static func fileName(_ serial: Int) -> String { "keys-\(serial).json" }

    package static func isFileName(_ name: String) -> Bool {
        guard name.hasPrefix("keys-"), name.hasSuffix(".json") else { return false }
        return Int(name.dropFirst(5).dropLast(5)) != nil
    }

    /// The advice for a list with an invalid field.
    package static let reportFault: Advice = "Report this to the publisher."

    package init(parsing bytes: [UInt8], source: String) throws {
        let fields = try Fields(JSON(parsing: bytes, source: source)) { place, why, now in
            MoultError(
                .feed, .refused, what: "\(source): \(place) \(why)", now: now ?? Self.reportFault)
        }
        let format = try fields.integer("keyList")
        guard (1...Self.format).contains(format) else {
            throw fields.fail(
                "keyList", "is format \(format), and this version of moult reads formats up to \(Self.format)",
                now: "Install a newer moult.")
        }
        product = try fields.string("product")
        serial = try fields.count("serial")
        isPlain = format == 1
        roles = try isPlain ? KeyRoles(all: TrustedKeys(fields)) : KeyRoles(fields)
        try fields.refuseUnknown()
    }

    package var json: JSON {
        .object(
            [
                JSON.Member("keyList", .size(isPlain ? 1 : Self.format)), JSON.Member("product", .string(product)),
                JSON.Member("serial", .size(serial)),
            ] + ((isPlain ? roles.root.json : roles.json).members ?? []))
    }
}

extension KeyRoles {
    fileprivate init(_ fields: Fields) throws {
        func keys(_ part: Fields) throws -> TrustedKeys {
            let keys = try TrustedKeys(part)
            try part.refuseUnknown()
            return keys
        }
        guard let expires = try fields.optionalTime("expires") else { throw fields.fail("expires", "is missing") }
        self.init(
            root: try keys(fields.object("root")), release: try keys(fields.object("release")),
            timestamp: try fields.optionalObject("timestamp").map(keys), expires: expires)
    }

    fileprivate var json: JSON {
        .record([
            "expires": expires?.description, "root": root.json, "release": release.json, "timestamp": timestamp?.json,
        ])
    }
}

extension KeyList {
    /// Parses a key list; returns nil unless enough root keys of the previous list signed it.
    ///
    /// A list of format 2 must also be signed by its own root keys, so that a next list is always possible.
    package init?(
        verifying bytes: [UInt8], serial: Int, product: String, after roles: KeyRoles, named name: String,
        at now: Timestamp, find: (String) throws -> [UInt8]?
    ) throws {
        guard try roles.root.haveSigned(bytes, named: name, at: now, find: find) else { return nil }
        try self.init(parsing: bytes, source: name)
        guard self.product == product, self.serial == serial else {
            throw MoultError(
                .feed, .refused, what: "\(name) is key list \(self.serial) of \(self.product)",
                why: "it must be key list \(serial) of \(product)",
                now: self.product == product
                    ? "Report this to the publisher."
                    : "If \"product\" in the store's moult.json is wrong, correct it. Otherwise, report this to the publisher."
            )
        }
        try requireOwnSignatures(bytes, named: name, at: now, find: find)
    }

    /// Throws unless a list of format 2 is signed with its own root keys: otherwise, no next list would be possible.
    package func requireOwnSignatures(
        _ bytes: [UInt8], named name: String, at now: Timestamp, find: (String) throws -> [UInt8]?
    ) throws {
        if try isPlain || roles.root.haveSigned(bytes, named: name, at: now, find: find) { return }
        throw MoultError(
            .unsigned, .refused, what: "\(name) is not signed with its own root keys",
            why: "the list needs \(roles.root.need)",
            now: "Sign it with a root key: \(moult: "sign", name, "--key", "ROOT.key")")
    }
}

extension TrustedKeys {
    /// Returns whether enough of these keys signed the bytes; throws if that cannot be determined.
    fileprivate func haveSigned(
        _ bytes: [UInt8], named name: String, at now: Timestamp, find: (String) throws -> [UInt8]?
    ) throws -> Bool {
        do {
            _ = try verify(bytes, named: name, at: now, find: find)
            return true
        } catch let error as MoultError {
            // If a server did not respond, the signature may still exist.
            if error.outcome != .refused { throw error }
            return false
        }
    }
}

/// The keys that may sign key lists, manifests and feeds.
package struct KeyRoles: Sendable, Equatable {
    /// The keys that sign the next key list.
    package var root: TrustedKeys
    /// The keys that sign manifests.
    package var release: TrustedKeys
    /// The keys that only sign feeds; nil if the release keys also sign feeds.
    package var timestamp: TrustedKeys?
    /// The time after which no key is trusted until a newer list arrives.
    package var expires: Timestamp?

    package init(
        root: TrustedKeys, release: TrustedKeys, timestamp: TrustedKeys? = nil, expires: Timestamp? = nil
    ) {
        (self.root, self.release, self.timestamp, self.expires) = (root, release, timestamp, expires)
    }

    /// Creates roles with one set of keys for all of them, as in a store's settings and in key lists of format 1.
    package init(all keys: TrustedKeys) { self.init(root: keys, release: keys) }

    /// The IDs of the keys that sign releases and feeds.
    package var all: [String] {
        var ids: [String] = []
        for entry in release.entries + feed.entries where !ids.contains(entry.key.id.description) {
            ids.append(entry.key.id.description)
        }
        return ids
    }

    /// The keys that sign feeds.
    package var feed: TrustedKeys { timestamp ?? release }

    /// Whether each manifest needs its own signatures. Otherwise the same keys sign feeds and manifests, and the digest
    /// in a signed feed proves a manifest.
    package var isSplit: Bool { timestamp != nil }
}
