internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// The keys that may sign the next feed, and the keys that stores trust afterwards.
extension FeedPublisher {
    /// Throws if the current feed is signed, but no key is given: stores then expect signatures.
    func requireSigningKey(_ isThere: Bool) throws {
        guard isThere, options.keys.isEmpty else { return }
        if try Files.facts(directory.file("\(Feed.fileName).minisig")) != nil {
            throw refusal(
                "\(directory.file(Feed.fileName)) is signed, but no key is specified",
                "stores that trust its key would refuse an unsigned feed", "Add the key with --key FILE.")
        }
    }

    /// Throws if the feed would not be signed, unless the publisher wants that: stores accept it only with a setting of their own.
    func requireKeyOrConsent() throws {
        if !options.keys.isEmpty || options.allowsUnsigned { return }
        throw refusal(
            "no key is specified",
            "stores refuse a feed without a signature, except from a directory if they trust no key",
            "Add a key with --key FILE. To publish without a signature, add --allow-unsigned.")
    }

    /// Returns the signatures that stores need to follow what is recommended for a withdrawn release. A stolen timestamp key, or no key
    /// at all, must not be enough to take them back to an older release.
    func signatures(
        onRecommendation release: Feed.Release, of product: String, by signing: SigningKeys
    ) throws -> [String] {
        guard let bytes = release.recommendation(of: product) else { return [] }
        func ignored(_ why: String, _ now: Advice) -> MoultError {
            refusal("stores would ignore the recommendation of --on-withdrawn", why, now)
        }
        if options.keys.isEmpty {
            throw ignored("the feed would not be signed", "Withdraw the release without --on-withdrawn.")
        }
        guard signing.isSplit else { return [] }
        let name = Feed.Release.recommendationName
        let files = try directory.signatures(of: bytes, named: name, by: signing.release)
        do { try signing.verify(manifest: bytes, files, named: name) } catch let error as MoultError {
            throw ignored(
                error.why ?? error.what,
                "Add a release key with --key FILE, or withdraw the release without --on-withdrawn.")
        }
        // The first signature also has a second name.
        return Set(files.compactMap { OutsideText.valid($0.1) }).sorted()
    }

    /// Throws if a key is not trusted any more: this is a better reason than the signatures that it cannot verify.
    func requireTrustedKeys(_ list: KeyList?) throws {
        // A change of keys needs the old ones, too.
        guard let list, !options.changesKeys else { return }
        let trusted = (list.roles.root.entries + list.roles.release.entries + list.roles.feed.entries).map(\.key)
        let earlier = try KeyDirectory(path: directory.path).all().dropLast().flatMap { list in
            (list.roles.root.entries + list.roles.release.entries + list.roles.feed.entries).map(\.key.id)
        }
        // Before the first list, stores trusted the keys that have signed it. A file that is not a signature names none.
        let pinned = try SignatureFiles.beside(directory.file(KeyList.fileName(1)))
            .compactMap { try? Signature(file: $1, named: $0).keyID }
        for key in options.keys.map(\.publicKey)
        where !trusted.contains(key) && (earlier + pinned).contains(key.id) {
            throw refusal(
                "key \(key.id) is not trusted any more",
                "\(KeyList.fileName(list.serial)) has replaced it, and stores refuse its signatures",
                "Use a key of the list with --key FILE: \(list.roles.feed.ids)")
        }
    }

    /// Throws unless a known key has signed the current feed: a new signature would also cover what someone without a
    /// key has put into the directory. Without a key list, a feed without signatures is accepted.
    func requireKnownSignature(_ feed: SignedFeed, _ list: KeyList?) throws {
        if try !isSigned(feed, list) {
            // Keys that may not publish are the better reason.
            let signing = try SigningKeys(options.keys, before: list, next: nil, repeats: options.changesKeys)
            if signing.feed.isEmpty { try signing.verify(feed: feed.bytes, [], named: Feed.fileName, at: options.now) }
            throw unproven(list)
        }
        if list == nil { try requireKnownKey(feed) }
    }

    /// Returns whether a known key has signed the feed; without a key list, also if none of the given keys has signed them.
    private func isSigned(_ feed: SignedFeed, _ list: KeyList?) throws -> Bool {
        let keys = try options.keys.map(\.publicKey) + keysOfKnownLists(list)
        if feed.isSigned(by: keys) { return true }
        if !feed.signers().contains(where: { id in keys.contains { $0.id == id } }) { return list == nil }
        throw changed(directory.file(Feed.fileName))
    }

    /// Returns the error for a feed with signatures by known keys that do not match.
    func changed(_ path: String) -> MoultError {
        refusal(
            "\(path) was changed after it was signed",
            "no signature next to it matches, and a new one would cover the change",
            "Restore the feed and its signatures from a copy that you trust, then publish again.")
    }

    private func unproven(_ list: KeyList?) -> MoultError {
        refusal(
            "\(directory.file(Feed.fileName)) was not signed with any of these keys",
            "a key list in the feed's directory does not prove which keys are the publisher's, because another user may have "
                + "put it there with a changed feed",
            "Add a key that signed the feed with --key FILE, or the newest list in the directory of `moult trust`: "
                + "--trust keys/\(KeyList.fileName(list?.serial ?? 1))")
    }

    /// Returns the keys of the current list if the publisher also has that list elsewhere, next to a list that the command names.
    /// Any user who can write to the feed's directory could put a list there, and such a list names its own root keys.
    private func keysOfKnownLists(_ list: KeyList?) throws -> [PublicKey] {
        guard let list else { return [] }
        let own = try Files.resolved(directory.path)
        for case .keyList(let path) in options.changes {
            let place = Files.directory(of: try Files.absolute(path))
            // A fault of a list is reported when the list is read to be published.
            guard try Files.resolved(place) != own, (try? KeyDirectory(path: place).all())?.contains(list) == true
            else { continue }
            return (list.roles.feed.entries + list.roles.release.entries).map(\.key)
        }
        return []
    }

    /// Throws unless stores know one of the keys. Without a key list, stores trust the keys in their settings, and those keys
    /// signed the current feed.
    private func requireKnownKey(_ feed: SignedFeed) throws {
        let path = directory.file(Feed.fileName)
        let signers = feed.signers()
        let own = options.keys.map(\.publicKey.id)
        guard let first = own.first, !signers.isEmpty, signers.isDisjoint(with: own) else { return }
        let old = signers.map(\.description).sorted().joined(separator: " and ")
        throw refusal(
            "\(path) was signed with key \(old), and not with \(first)",
            "stores that trust \(old) would refuse the feed",
            "Use that key with --key FILE. To replace it, sign with both: "
                + "\(moult: "publish", directory.path, "--trust", "NEW.pub", "--key", "OLD.key", "--key", "NEW.key")")
    }

    /// Returns the key list to publish, if any, with the files that stores need to verify it.
    func nextList(
        after list: KeyList?, _ product: String
    ) throws -> (list: KeyList, files: [(name: String, bytes: [UInt8])])? {
        for change in options.changes {
            switch change {
            case .keyList(let path):
                // After an interruption, the publisher may specify the same list again.
                let there = try Files.read(directory.file(Files.name(of: path)), limit: KeyList.largest)
                if let there, try Files.read(path, limit: KeyList.largest) == there { return nil }
                let next = try KeyDirectory.read(path, after: list, at: options.now)
                guard next.list.product == product else {
                    throw refusal(
                        "\(path) is a key list of \(next.list.product)", "the feed is for \(product)",
                        "Use the key list of that product.")
                }
                return next
            case .trust(let keys, let threshold):
                if let list, list.isPlain,
                    list.roles.release == TrustedKeys(keys.map { .init(key: $0) }, threshold: threshold)
                {
                    return nil
                }
                return try plainList(keys, threshold: threshold, after: list, product)
            case .withdraw, .roll, .promote: continue
            }
        }
        return nil
    }

    private func plainList(
        _ keys: [PublicKey], threshold: Int, after list: KeyList?, _ product: String
    ) throws -> (list: KeyList, files: [(name: String, bytes: [UInt8])]) {
        guard !options.keys.isEmpty else {
            throw refusal(
                "no key is specified to sign the key list",
                "stores accept a key list only if a key that they trust has signed it",
                "Add the current key with --key FILE.")
        }
        if let list, !list.isPlain {
            throw refusal(
                "\(KeyList.fileName(list.serial)) has keys for each role",
                "a public key alone does not show which role it is for",
                "Publish the next list with --trust keys/\(KeyList.fileName(list.serial + 1)). To create it: \(moult: "trust", "keys", "--key", "ROOT.key")"
            )
        }
        let next = KeyList(
            product: product, serial: (list?.serial ?? 0) + 1,
            keys: TrustedKeys(keys.map { TrustedKeys.Entry(key: $0) }, threshold: threshold))
        let name = KeyList.fileName(next.serial)
        let bytes = Array(next.json.pretty.utf8)
        _ = try KeyList(parsing: bytes, source: name)
        // Signatures first: stores would ignore a list without them.
        return (next, try directory.signatures(of: bytes, named: name, by: options.keys) + [(name, bytes)])
    }

    /// Returns signatures by the new release keys for the releases that are already in the feed.
    func renewedSignatures(
        of releases: [Feed.Release], by signing: SigningKeys, after list: KeyList?
    ) throws -> [(name: String, bytes: [UInt8])] {
        try releases.filter { $0.withdrawn == nil }.flatMap { release -> [(name: String, bytes: [UInt8])] in
            let name = release.manifest.name
            guard let bytes = try Files.read(directory.file(name), limit: Manifest.largest),
                try SHA256.digest(of: bytes).hex == release.manifest.sha256
            else { return [] }
            let there = try SignatureFiles.beside(directory.file(name))
            // The timestamp keys alone must not be enough to get a manifest signed.
            if let list, list.roles.isSplit {
                _ = try list.roles.release.verify(bytes, named: name, at: Timestamp(seconds: 0)) { wanted in
                    there.first { $0.0 == wanted }?.1
                }
            }
            let new = try directory.adding(signing.release, to: there, of: bytes, named: name)
            try signing.verify(manifest: bytes, there + new, named: name)
            return new
        }
    }
}
