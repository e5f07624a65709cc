package import MoultBasics

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
