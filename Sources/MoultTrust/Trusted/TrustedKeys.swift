package import MoultBasics

/// The public keys that a store trusts, and the number of them that must have signed a file.
package struct TrustedKeys: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        package var key: PublicKey
        /// The time after which the key's signatures are no longer valid.
        package var notAfter: Timestamp?

        package init(key: PublicKey, notAfter: Timestamp? = nil) { (self.key, self.notAfter) = (key, notAfter) }
    }

    package var entries: [Entry]
    package var threshold: Int

    /// The maximum number of required signatures.
    static let maxSignatures = 16

    package init(_ entries: [Entry], threshold: Int = 1) { (self.entries, self.threshold) = (entries, threshold) }

    /// Reads `keys` from `moult.json`, or a list of keys in the same form.
    package init(_ fields: Fields) throws {
        threshold = try fields.optionalNumber("threshold", in: 1...Self.maxSignatures) ?? 1
        guard fields.json("trusted") != nil else { throw fields.fail("trusted", "is missing") }
        entries = try fields.objects("trusted").map(Self.entry)
        guard entries.count >= threshold else {
            throw fields.fail("trusted", "must have at least \(threshold) keys, because \"threshold\" is \(threshold)")
        }
        // Compares the keys themselves, because the same key with another ID would count twice.
        var known: [[UInt8]: KeyID] = [:]
        for (index, entry) in entries.enumerated() {
            guard let same = known.updateValue(entry.key.id, forKey: entry.key.bytes) else { continue }
            throw fields.fail("trusted[\(index)]", "is the same key as \(same)")
        }
    }

    private static func entry(_ part: Fields) throws -> Entry {
        let key: PublicKey
        do { key = try PublicKey(base64: part.string("key"), named: part.path("key")) } catch let error as MoultError {
            if error.code != .minisignForm { throw error }
            throw part.fail(
                "key", "is not a minisign public key: \(error.why ?? "")",
                now: "Copy the second line of the publisher's .pub file.")
        }
        if let id = try part.optionalString("id"), id != key.id.description {
            throw part.fail("id", "must be \(key.id), the ID of the key")
        }
        let notAfter = try part.optionalTime("notAfter")
        try part.refuseUnknown()
        return Entry(key: key, notAfter: notAfter)
    }

    /// A digest that identifies a set of keys regardless of their order, IDs and times.
    package var fingerprint: String {
        get throws {
            try SHA256.digest(of: entries.map(\.key.bytes).sorted { $0.lexicographicallyPrecedes($1) }.flatMap { $0 })
                .hex
        }
    }

    /// The IDs of the keys: `8C01…, 77AB…`.
    package var ids: String { entries.map(\.key.id.description).joined(separator: ", ") }

    /// The keys as text for messages: `8C01…`, or `at least 2 of 8C01…, 77AB…`.
    package var words: String { entries.count == 1 ? ids : "at least \(threshold) of \(ids)" }

    /// The signatures that a file needs, as text for messages.
    package var need: String {
        if entries.count == 1 { return "a signature by key \(ids)" }
        return threshold == 1
            ? "a signature by one of these keys: \(ids)"
            : "signatures by at least \(threshold) of these keys: \(ids)"
    }

    package var json: JSON {
        .record([
            "threshold": threshold,
            "trusted": entries.map {
                JSON.record(["id": $0.key.id.description, "key": $0.key.base64, "notAfter": $0.notAfter?.description])
            },
        ])
    }
}
