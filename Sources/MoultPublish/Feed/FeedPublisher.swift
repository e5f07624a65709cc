internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Publishes releases to a directory of static files, for any web server, object store or USB stick.
package struct FeedPublisher {
    let directory: FeedDirectory
    let options: PublishOptions

    package init(_ directory: String, _ options: PublishOptions) {
        self.directory = FeedDirectory(path: directory)
        self.options = options
    }

    /// Adds releases by their sealed manifests, applies the changes, and renews the feed. If anything fails before the new feed
    /// is public, the old feed stays.
    package func publish(_ manifests: [String]) throws -> PublishReport {
        let isNew = try Files.facts(directory.path) == nil
        let output = try PinnedDirectory.output(directory.path, creating: true)
        defer { withExtendedLifetime(output) {} }
        do { return try publishLocked(manifests) } catch {
            // An empty directory would look like a feed. A directory that is not empty stays.
            if isNew { try? Files.removeEmpty(directory.path) }
            throw error
        }
    }

    private func publishLocked(_ manifests: [String]) throws -> PublishReport {
        let lock = try directory.lock()
        defer { withExtendedLifetime(lock) {} }
        // Creating the work directory completes or undoes the work of a killed command.
        let work = try WorkDirectory(in: directory.path, named: ".moult-publish")
        defer { work.remove() }
        let before = try directory.feed()
        let earlier = try before == nil && options.serial == nil ? directory.signedReleases(except: manifests) : []
        try requireSigningKey(before != nil)
        let releases = try manifests.map { try SealedRelease($0, options: options) }
        let list = try KeyDirectory(path: directory.path).newest()
        let isProven = try before.map { try isSignedByKnownKey($0.digest, list) } ?? true
        if before != nil, list == nil { try requireKnownKey() }
        let unsigned = try list == nil && !options.keys.isEmpty ? directory.unsignedReleases(before?.feed) : []
        guard let product = before?.feed.product ?? releases.first?.manifest.product else {
            throw refusal(
                "no feed at \(directory.file(Feed.fileName))", "a feed starts with its first release",
                earlier.isEmpty
                    ? "Specify the manifest of a release."
                    : "Restore \(Feed.fileName) and its signatures from a copy. To start a new feed, specify a manifest."
            )
        }
        let next = try nextList(after: list, product)
        let signing = try SigningKeys(
            options.keys, before: list, next: next?.list, repeats: options.changesKeys && next == nil)
        var feed = try renewed(before?.feed, product, keyList: (next?.list ?? list)?.serial)
        var added: [SealedRelease] = []
        for release in releases where try add(release, to: &feed) { added.append(release) }
        for change in options.changes { try make(change, in: &feed) }
        let dropped = try drop(from: &feed, publishing: releases)
        try installForTrial(added, over: isProven ? before?.feed.releases ?? [] : [], in: work)
        try keepPatches(of: releases, in: &feed)
        let text = Array(feed.json.pretty.utf8)
        guard text.count <= Feed.largest else {
            throw refusal(
                "the feed is too large",
                "its size would be \(text.count) bytes, and the limit is \(Feed.largest)",
                "Drop old releases with --keep-releases, or start a new feed.")
        }
        // Reads the file in the same way as stores.
        _ = try Feed(parsing: text, source: directory.file(Feed.fileName))
        let signatures = try FeedSignatures(feed: text, by: signing.feed, in: directory)
        try signing.verify(feed: text, signatures.usual, named: Feed.fileName, at: options.now)
        if !isProven { throw unproven(list) }
        let own = try releases.map { try $0.signatures(in: directory, by: signing) }
        let renewed =
            try next == nil ? [] : renewedSignatures(of: before?.feed.releases ?? [], by: signing, after: list)

        // The feed comes after all files that it names, and the new key list after the feed that it authorizes, so readers
        // never find a file that they cannot verify with their keys. Only the first feed needs its list first.
        var set = FileSet(before == nil ? .added : .replacing, head: Feed.fileName)
        var files: [String] = []
        for (release, signatures) in zip(releases, own) {
            files += try release.stage(for: directory, in: feed, signatures.new, by: work, to: &set)
        }
        let lists = next?.files ?? []
        for (name, bytes) in renewed + signatures.early + (before == nil ? lists : []) {
            if try Files.read(directory.file(name), limit: KeyList.largest) == bytes { continue }
            try work.add(name, bytes)
            set.first.append(name)
        }
        try work.add(Feed.fileName, text)
        for (name, bytes) in signatures.usual + (before == nil ? [] : lists) {
            try work.add(name, bytes)
            set.last.append(name)
        }
        let stale = try directory.stalePatches(feed).union(directory.files(of: dropped, notOf: feed)).sorted()
        set.stale =
            try stale
            + FeedNames.staleSignatures(
                among: Files.list(directory.path), keeping: signatures.usual.map(\.0),
                digests: [signatures.digest] + (before.map { [$0.digest] } ?? []))
        // A script that copies the feed to another place needs the signatures as well.
        files += (set.first + set.last).filter { !files.contains($0) }
        for name in own.flatMap(\.wrong) { try Files.remove(directory.file(name)) }
        do { try work.deliver(set) } catch { throw explainPublicFeed(after: error, feed) }
        let uploaded = try options.uploadCommand.map { try FeedUpload(directory.path, command: $0).run() }
        return PublishReport(
            feed: directory.file(Feed.fileName), serial: feed.serial, expires: feed.expires,
            added: added.map(\.manifest.version), files: files, signers: signing.feed.map(\.publicKey.id),
            releases: feed.releases.count, isNew: before == nil, earlier: earlier, unsigned: unsigned, removed: stale,
            dropped: dropped.map(\.version), uploaded: uploaded ?? [])
    }

    /// If the command failed after the new feed became public, returns the error with that information.
    private func explainPublicFeed(after error: any Error, _ feed: Feed) -> any Error {
        guard var error = error as? MoultError, error.outcome == .stuck else { return error }
        error.what = "the feed with serial \(feed.serial) is public, but the command did not finish"
        return error
    }

    /// Makes trial installations of the releases, because a release that no store could install must not be published.
    private func installForTrial(
        _ releases: [SealedRelease], over earlier: [Feed.Release], in work: WorkDirectory
    ) throws {
        for release in releases {
            try release.verifyBundle()
            _ = try Trials(
                of: release.path, release.manifest, over: [], and: directory.path, listedIn: earlier, in: work.path,
                by: options.tryInstall)
        }
    }

    /// Removes from the feed the releases that the publisher does not keep, and returns them.
    private func drop(from feed: inout Feed, publishing new: [SealedRelease]) throws -> [Feed.Release] {
        guard let count = options.keptReleases else { return [] }
        let kept = ReleaseRetention(count: count).kept(of: feed)
        let versions = Set(kept.map(\.version))
        let dropped = feed.releases.filter { !versions.contains($0.version) }
        if let lost = new.first(where: { !versions.contains($0.manifest.version) }) {
            throw refusal(
                "release \(lost.manifest.version) would be dropped from the feed at once",
                "the feed has \(counted(count, "newer release")), and --keep-releases allows no more",
                "Keep more releases, or publish without --keep-releases.")
        }
        feed.releases = kept
        return dropped
    }

    /// Lists in the feed the patches of new releases that save bytes, and removes the patches that do not start from one of the
    /// last releases.
    private func keepPatches(of new: [SealedRelease], in feed: inout Feed) throws {
        let bases = feed.releases.suffix(options.patches + 1).dropLast()
        for index in feed.releases.indices {
            let release = feed.releases[index]
            guard let sealed = new.first(where: { $0.manifest.version == release.version }) else {
                feed.releases[index].patches.removeAll { patch in !bases.contains { $0.version == patch.from } }
                continue
            }
            for base in bases where base.sequence < release.sequence {
                for patch in try sealed.patches(from: base, new, directory)
                where !feed.releases[index].patches.contains(where: { $0.file == patch.file }) {
                    feed.releases[index].patches.append(.init(from: base.version, file: patch.file))
                }
            }
        }
    }

    /// Throws if the current feed is signed, but no key is given: stores then expect signatures.
    private func requireSigningKey(_ isThere: Bool) throws {
        guard isThere, options.keys.isEmpty else { return }
        if try Files.facts(directory.file("\(Feed.fileName).minisig")) != nil {
            throw refusal(
                "\(directory.file(Feed.fileName)) is signed, but no key is specified",
                "stores that trust its key would refuse an unsigned feed", "Add the key with --key FILE.")
        }
    }

    /// Throws if the current feed was changed after it was signed: a new signature would also cover what someone without a key has
    /// put into the directory. `digest` is that of the feed that was read. Returns whether a known key has signed the feed; without
    /// a key list, a feed that none of the given keys has signed yet is accepted.
    private func isSignedByKnownKey(_ digest: String, _ list: KeyList?) throws -> Bool {
        let path = directory.file(Feed.fileName)
        let keys = try options.keys.map(\.publicKey) + keysOfKnownLists(list)
        guard let bytes = try Files.read(path, limit: Feed.largest), try SHA256.digest(of: bytes).hex == digest else {
            throw refusal(
                "\(path) has changed while it was read", "another program writes to the directory", "Publish again.")
        }
        // A file that is not a signature belongs to no key.
        let known = try SignatureFiles.beside(path).filter { name, file in
            (try? Signature(file: file, named: name)).map { signature in keys.contains { $0.id == signature.keyID } }
                ?? false
        }
        if known.contains(where: { !SignatureFiles.isWrong($0, of: bytes, by: keys) }) || known.isEmpty && list == nil {
            return true
        }
        if known.isEmpty { return false }
        throw refusal(
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
    private func requireKnownKey() throws {
        let path = directory.file(Feed.fileName)
        // A file that cannot be read as a signature says nothing about a key.
        let signers = Set(try SignatureFiles.beside(path).compactMap { try? Signature(file: $1, named: $0).keyID })
        let own = options.keys.map(\.publicKey.id)
        guard let first = own.first, !signers.isEmpty, signers.isDisjoint(with: own) else { return }
        let old = signers.map(\.description).sorted().joined(separator: " and ")
        throw refusal(
            "\(path) was signed with key \(old), and not with \(first)",
            "stores that trust \(old) would refuse the feed",
            "Use that key with --key FILE. To replace it, sign with both: moult publish \(shellLine([directory.path])) "
                + "--trust NEW.pub --key OLD.key --key NEW.key")
    }

    private func renewed(_ before: Feed?, _ product: String, keyList: Int?) throws -> Feed {
        // With a new key list, serials may start again.
        let isNewList = before.map { $0.keyList ?? 0 < keyList ?? 0 } ?? true
        let last = before?.serial ?? 0
        let mayRestart = isNewList && last >= Feed.serialRange
        let serial = options.serial ?? (mayRestart ? 1 : last + 1)
        if let before, serial <= last, !isNewList {
            throw refusal(
                "the feed cannot have serial \(serial)",
                "the current feed has serial \(before.serial), and stores accept only a higher one",
                "Choose a higher serial, or omit --serial.")
        }
        let base = isNewList ? 0 : last
        guard serial - base <= Feed.serialRange else {
            throw refusal(
                "the feed cannot have serial \(serial)",
                "stores refuse a serial more than \(Feed.serialRange) above \(base)",
                "Choose a lower serial, or omit --serial.")
        }
        return Feed(
            product: product, serial: serial, created: options.now,
            expires: Timestamp(seconds: options.now.seconds + options.days * 86_400), releases: before?.releases ?? [],
            keyList: keyList)
    }

    /// Adds a release; returns whether it is new. After an interruption, the publisher may publish the same release again.
    private func add(_ new: SealedRelease, to feed: inout Feed) throws -> Bool {
        let (version, sequence) = (new.manifest.version, new.manifest.sequence)
        guard new.manifest.product == feed.product else {
            throw refusal(
                "\(new.path) is a release of \(new.manifest.product)", "the feed is for \(feed.product)",
                "Publish it to the feed of its product.")
        }
        for old in feed.releases {
            if old.version.ranksWith(version) {
                var entry = try new.entry
                entry.patches = old.patches
                if entry == old { return false }
                throw published(entry, as: old)
            }
            if old.sequence == sequence || (old.sequence < sequence) != old.version.precedes(version) {
                throw refusal(
                    "release \(version) has sequence \(sequence), and \(old.version) has \(old.sequence)",
                    "a newer version must have a higher sequence, or stores could not update from one to the other",
                    "Choose a sequence that matches the version. If the directory has the earlier releases, `moult pack` does that."
                )
            }
        }
        feed.releases.append(try new.entry)
        feed.releases.sort { $0.sequence < $1.sequence }
        return true
    }

    /// Returns the error for a version that the feed already has with a different entry.
    private func published(_ new: Feed.Release, as old: Feed.Release) -> MoultError {
        let what = "version \(old.version) is already published"
        let another = "Choose another version for the release."
        guard new.manifest == old.manifest else {
            return refusal(what, "the content of a version must never change", another)
        }
        if let reason = old.withdrawn {
            return refusal(what, "it was withdrawn: \(reason); a withdrawal cannot be undone", another)
        }
        if new.channel != old.channel {
            return refusal(
                what, "it is in the channel \(old.channel), and the channel of a version cannot be changed", another)
        }
        guard new.rollout != old.rollout else {
            return refusal(
                what, "its entry in the feed differs from the release, and a published entry cannot be changed", another
            )
        }
        let words =
            ["moult", "publish", directory.path, "--release", "\(old.version)", "--rollout", "\(new.rollout)"]
            + (options.keys.isEmpty ? [] : ["--key", "FILE"])
        return refusal(
            what,
            "it is rolled out to \(old.rollout) % of machines, and this command would change that to \(new.rollout) %",
            "To change the rollout of a published release: \(shellLine(words))")
    }

    private func make(_ change: PublishOptions.Change, in feed: inout Feed) throws {
        switch change {
        case .withdraw(let version, let reason): feed.releases[try index(of: version, in: feed)].withdrawn = reason
        case .roll(let version, let share):
            let index = try index(of: version, in: feed)
            if let reason = feed.releases[index].withdrawn {
                throw refusal(
                    "release \(version) cannot be rolled out", "it was withdrawn: \(reason)",
                    "Publish its content as a new version.")
            }
            feed.releases[index].rollout = share
        case .trust, .keyList: break
        }
    }

    private func index(of version: Version, in feed: Feed) throws -> Int {
        if let index = feed.releases.firstIndex(where: { $0.version == version }) { return index }
        throw refusal(
            "no release \(version) in the feed",
            "its newest releases are \(feed.releases.suffix(5).map(\.version.description).joined(separator: ", "))",
            "Choose one of them.")
    }

    /// Returns the key list to publish, if any, with the files that stores need to verify it.
    private func nextList(
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
            case .withdraw, .roll: continue
            }
        }
        return nil
    }

    /// Returns the next list with one set of keys for all roles, signed with the keys given to the command.
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
                "Create the next list with: moult trust DIRECTORY --key ROOT.key, then publish it with --trust KEYS.json"
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
    private func renewedSignatures(
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

    private func refusal(_ what: String, _ why: String, _ now: String) -> MoultError {
        MoultError(.publishing, .refused, what: what, why: why, now: now)
    }
}
