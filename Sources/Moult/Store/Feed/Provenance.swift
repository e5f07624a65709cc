internal import MoultBasics
internal import MoultFiles
package import MoultTrust

/// The proof of a release's origin, as shown in the first line of a plan.
package enum Provenance: Sendable, Equatable {
    case signed([KeyID])
    /// The release is signed, but the store has no key to check the signature.
    case unchecked
    case unsigned
    /// The release comes from a kept generation, which was verified when it was installed.
    case kept

    package var signers: [KeyID]? { if case .signed(let signers) = self { signers } else { nil } }
    package var isSigned: Bool { if case .signed = self { true } else { false } }

    package var words: String {
        switch self {
        case .signed(let signers): "signed by \(signers.map(\.description).joined(separator: " and "))"
        case .unchecked: "signature not checked: this store has no key"
        case .unsigned: "not signed"
        case .kept: "verified when it was installed"
        }
    }
}

extension Provenance {
    /// The maximum size of a signature file in bytes; usual ones are far smaller.
    package static let largestSignature = 1 << 14

    /// Verifies a file with the signatures next to it; without keys, only checks whether the file has a signature.
    package init(of bytes: [UInt8], at path: String, keys: KeyChain?) throws {
        if let keys {
            do {
                self = .signed(
                    try keys.verify(bytes, named: path, by: keys.roles.release) {
                        try Files.read($0, limit: Self.largestSignature)
                    })
            } catch var error as MoultError where error.code == .unsigned {
                error.now = error.now.map { now in
                    "\(now) The publisher creates it with: \(moult: "sign", path, "--key", "FILE")"
                }
                throw error
            }
        } else {
            self.init(unproven: path) { try Files.read($0, limit: Self.largestSignature) }
        }
    }

    /// For a store without keys: finds out whether the file has a signature, without verifying it. `find` gets the name of a
    /// signature file and returns its bytes, or nil if the file does not exist.
    package init(unproven name: String, find: (String) throws -> [UInt8]?) {
        // Only a message depends on this, so a signature that cannot be looked up counts as missing.
        let signature = (try? find("\(name).minisig")) ?? nil
        self = signature == nil ? .unsigned : .unchecked
    }
}
