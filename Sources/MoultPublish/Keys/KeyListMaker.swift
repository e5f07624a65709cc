package import MoultBasics
internal import MoultFiles
package import MoultTrust
internal import StepKit

package struct KeyListMaker {
    /// The keys of a role, and the number of required signatures; values that are not given stay as in the previous
    /// list.
    package struct Role: Sendable {
        package var keys: [PublicKey] = []
        package var threshold: Int?
        package init() {}
    }

    package var product: String?
    package var root = Role()
    package var release = Role()
    package var timestamp = Role()
    package var days = 365
    package var keys: [SecretKey] = []
    package var now = Timestamp.now
    package init() {}

    package struct Report: Sendable {
        package let path: String
        package let list: KeyList
        package let signers: [KeyID]
        /// The signatures that are missing before stores accept the list; nil if none.
        package let missing: String?
    }

    package func make(in directory: String) throws -> Report {
        let output = try PinnedDirectory.output(directory, creating: true)
        defer { withExtendedLifetime(output) {} }
        // Of two commands that make a list at the same time, each would give its list the same number.
        let lock = try FeedDirectory(path: directory).lock()
        defer { withExtendedLifetime(lock) {} }
        try WorkDirectory.removeLeftovers(of: ".moult-trust", in: directory)
        let before = try KeyDirectory(path: directory).newest()
        guard let product = before?.product ?? product else {
            throw refusal(
                "no key list in \(directory)", "the first list needs the name of the product", "Add --product NAME.")
        }
        if let own = self.product, own != product {
            throw refusal(
                "\(directory) has the key lists of \(product)", "--product specifies \(own)",
                "Choose another directory.")
        }
        let old = before?.roles
        let hasTimestamp = !timestamp.keys.isEmpty || timestamp.threshold != nil || old?.timestamp != nil
        let roles = KeyRoles(
            root: try keys(root, "root", before: old?.root),
            release: try keys(release, "release", before: old?.release),
            timestamp: hasTimestamp ? try keys(timestamp, "timestamp", before: old?.timestamp) : nil,
            expires: Timestamp(seconds: now.seconds + days * 86_400))
        let list = KeyList(product: product, serial: (before?.serial ?? 0) + 1, roles: roles)
        let name = KeyList.fileName(list.serial)
        let path = "\(directory)/\(name)"
        let bytes = Array(list.json.pretty.utf8)
        // Reads the file in the same way as stores.
        _ = try KeyList(parsing: bytes, source: path)
        let allowed = roles.root.entries.map(\.key) + (old?.root.entries.map(\.key) ?? [])
        let current = old?.root ?? roles.root
        for key in keys where before != nil && !allowed.contains(key.publicKey) {
            throw refusal(
                "key \(key.publicKey.id) is not a root key",
                "the root key\(current.entries.count == 1 ? " is" : "s are") \(current.ids)",
                "Specify a secret root key with --key FILE.")
        }
        guard !keys.isEmpty else {
            throw refusal(
                "no root key is specified", "stores accept only a signed list", "Specify a root key with --key FILE.")
        }
        if let before { try requireOwn(before, in: directory) }
        let work = try WorkDirectory(in: directory, named: ".moult-trust")
        defer { work.remove() }
        // An existing list with this name was not signed.
        var set = FileSet(.overwriting, head: name)
        for (place, file) in try FeedDirectory(path: directory).signatures(of: bytes, named: name, by: keys) {
            try work.add(place, file)
            set.first.append(place)
        }
        set.stale = try SignatureFiles.beside(path).map(\.0).filter { !set.first.contains($0) }
        try work.add(name, bytes)
        try work.deliver(set)
        return Report(
            path: path, list: list, signers: keys.map(\.publicKey.id), missing: try missing(path, after: before))
    }

    private func keys(_ role: Role, _ name: String, before: TrustedKeys?) throws -> TrustedKeys {
        let entries = role.keys.isEmpty ? before?.entries ?? [] : role.keys.map { TrustedKeys.Entry(key: $0) }
        guard !entries.isEmpty else {
            throw refusal(
                "the list has no \(name) key", "the first list must have keys for this role", "Add --\(name) KEY.pub.")
        }
        let threshold = role.threshold ?? before?.threshold ?? 1
        guard threshold <= entries.count else {
            throw refusal(
                "the role \(name) has \(counted(entries.count, "key"))", "it needs \(threshold) signatures",
                "Give it more keys with --\(name) KEY.pub, or choose a lower --threshold \(name)=N.")
        }
        return TrustedKeys(entries, threshold: threshold)
    }

    /// Throws unless one of the given keys has signed the previous list, of which the next one keeps keys: another user who can
    /// write to the directory could have put a list there that names that user's root key, too.
    private func requireOwn(_ before: KeyList, in directory: String) throws {
        let path = "\(directory)/\(KeyList.fileName(before.serial))"
        let bytes = try Files.read(path, limit: KeyList.largest) ?? []
        let own = TrustedKeys(keys.map { TrustedKeys.Entry(key: $0.publicKey) }, threshold: 1)
        do {
            _ = try own.verify(bytes, named: path, at: now, find: { try Files.read($0, limit: 1 << 14) })
        } catch is MoultError {
            throw refusal(
                "\(path) was not signed with any of these keys",
                "the next list keeps keys of this one, which may not be yours",
                "Use a key that signed it with --key ROOT.key; others can sign the new list later with `moult sign`.")
        }
    }

    private func missing(_ path: String, after before: KeyList?) throws -> String? {
        do {
            _ = try KeyDirectory.read(path, after: before, at: now)
            return nil
        } catch let error as MoultError where error.code == .unsigned { return error.why ?? error.what }
    }
}
