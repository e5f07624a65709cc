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

    /// Returns whether this is the file name of a key list.
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
        let time = try fields.string("expires")
        guard let expires = Timestamp(time) else {
            throw fields.fail("expires", "\"\(time)\" is not a time", now: "For example: 2027-11-20T10:00:00Z.")
        }
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
