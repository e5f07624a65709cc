package import MoultBasics

/// The keys that a publisher's stores shall trust from now on: `keys/N.json` beside the feed, signed by keys of the
/// list before it.
///
///     { "keyList": 1, "product": "org.example.app", "serial": 1, "threshold": 1, "trusted": [ … ] }
package struct KeyList: Sendable, Equatable {
    package static let format = 1
    package static let largest = 1 << 16

    package var product: String
    /// 1 for the first list after the keys that stores have pinned, then 2.
    package var serial: Int
    package var keys: TrustedKeys

    package init(product: String, serial: Int, keys: TrustedKeys) {
        (self.product, self.serial, self.keys) = (product, serial, keys)
    }

    /// The name of a list beside the feed.
    package static func fileName(_ serial: Int) -> String { "keys-\(serial).json" }

    package init(parsing bytes: [UInt8], source: String) throws {
        let fields = try Fields(JSON(parsing: bytes, source: source)) { place, why, now in
            MoultError(.feed, .refused, what: "\(source): \(place) \(why)", now: now)
        }
        let format = try fields.integer("keyList")
        guard format == Self.format else {
            throw fields.fail(
                "keyList", "is format \(format), and this moult reads format \(Self.format)",
                now: "Install a newer moult.")
        }
        product = try fields.string("product")
        serial = try fields.count("serial")
        keys = try TrustedKeys(fields)
        try fields.refuseUnknown()
    }

    package var json: JSON {
        .object(
            [
                JSON.Member("keyList", .size(Self.format)), JSON.Member("product", .string(product)),
                JSON.Member("serial", .size(serial)),
            ] + (keys.json.members ?? []))
    }
}
