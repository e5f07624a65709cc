internal import MoultBasics
internal import MoultTrust
internal import StepKit

/// The publisher's secret keys, divided into those that sign the feed and those that sign manifests.
struct SigningKeys {
    let feed: [SecretKey]
    let release: [SecretKey]
    /// The key list that stores will use; nil as long as they trust one set of keys for all roles.
    private let list: KeyList?
    /// Every public key that may have signed files in the feed.
    let known: [PublicKey]

    /// `next` is the list that stores use from now on, and `before` is the one that they may still have: with keys from both,
    /// every reader finds a feed that its own list can verify. With `repeats`, the command repeats a completed change of keys:
    /// its keys include those that were replaced, and these sign nothing.
    init(_ keys: [SecretKey], before: KeyList?, next: KeyList?, repeats: Bool) throws {
        let all = keys.map(\.publicKey)
        known =
            all + [before, next].compactMap { $0?.roles }.flatMap { ($0.release.entries + $0.feed.entries).map(\.key) }
        guard let list = next ?? before else {
            (feed, release, self.list) = (keys, keys, nil)
            return
        }
        let roles = [list.roles] + (next == nil ? [] : before.map { [$0.roles] } ?? [])
        func holds(_ set: TrustedKeys, _ key: SecretKey) -> Bool { set.entries.contains { $0.key == key.publicKey } }
        // Before the first list, stores trust the keys that they have pinned, which are not recorded here.
        let takesPinned = before == nil && next != nil
        var (feed, release): ([SecretKey], [SecretKey]) = ([], [])
        for key in keys {
            let signsFeed = roles.contains { holds($0.feed, key) }
            let signsReleases = roles.contains { holds($0.release, key) }
            guard signsFeed || signsReleases || takesPinned else {
                if repeats { continue }
                throw refusal(
                    "key \(key.publicKey.id) is not allowed to publish",
                    roles.contains { holds($0.root, key) }
                        ? "it is a root key, which signs key lists only"
                        : list.isPlain
                            ? "\(KeyList.fileName(list.serial)) does not have this key, and stores trust only the keys of that list"
                            : "\(KeyList.fileName(list.serial)) has this key neither as a release key nor as a timestamp key",
                    list.isPlain
                        ? "Use a key of the list with --key FILE: \(list.roles.feed.ids)"
                        : "Use a key of the list with --key FILE, or create a list with this key: \(moult: "trust", "keys", "--release", "KEY.pub", "--key", "ROOT.key")"
                )
            }
            if signsFeed || !signsReleases { feed.append(key) }
            if signsReleases || !signsFeed { release.append(key) }
        }
        (self.feed, self.release, self.list) = (feed, release, list)
    }

    /// Whether manifests need separate signatures.
    var isSplit: Bool { list?.roles.isSplit ?? false }

    /// Throws if stores would refuse a feed with these signatures.
    func verify(feed bytes: [UInt8], _ signatures: [(String, [UInt8])], named name: String, at now: Timestamp) throws {
        guard let list else { return }
        if let expires = list.roles.expires, expires < now {
            throw refusal(
                "the key list \(KeyList.fileName(list.serial)) has expired",
                "it was valid until \(expires), and stores refuse all files signed under it",
                "Publish the next list with --trust keys/\(KeyList.fileName(list.serial + 1)). To create it: \(moult: "trust", "keys", "--key", "ROOT.key")"
            )
        }
        let role = list.roles.isSplit ? "timestamp" : "release"
        try verify(bytes, named: name, by: list.roles.feed, role, what: "the feed", signatures)
    }

    /// Throws if stores would refuse a manifest with these signatures.
    func verify(manifest bytes: [UInt8], _ signatures: [(String, [UInt8])], named name: String) throws {
        guard let list, list.roles.isSplit else { return }
        try verify(bytes, named: name, by: list.roles.release, "release", what: name, signatures)
    }

    private func verify(
        _ bytes: [UInt8], named name: String, by keys: TrustedKeys, _ role: String, what: String,
        _ signatures: [(String, [UInt8])]
    ) throws {
        do {
            _ = try keys.verify(bytes, named: name) { place in signatures.first { $0.0 == place }?.1 }
        } catch let error as MoultError where error.outcome == .refused {
            throw MoultError(
                .publishing, .refused, what: "\(what) lacks signatures by \(role) keys",
                why: "stores require \(keys.need)",
                now: role == "release"
                    ? "Use a release key with --key FILE, or sign the manifest on the machine that has the key: \(moult: "sign", "MANIFEST", "--key", "FILE")"
                    : "Use a timestamp key with --key FILE.", cause: error)
        }
    }
}
