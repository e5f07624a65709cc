internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// A feed that was public, and that another publisher has overwritten without its changes.
struct LostFeed {
    let feed: Feed
    let digest: String
    /// The feed before it, from which its changes are known; nil if it is not available.
    var base: Feed?
}

/// The feed that the next one replaces, and what is known of the place where stores find it.
struct Predecessor {
    var current: SignedFeed?
    var lost: [LostFeed] = []
    /// The public feed; nil if none was found, or if the directory itself is public.
    var found: SignedFeed?
    /// The digests of manifests whose bundles and patches are public, and need not be in the directory.
    var elsewhere: Set<String> = []
    var warnings: [Advice] = []
}

/// Reading the public feed before the next one is made.
extension FeedPublisher {
    /// Returns the feed to replace: the newer one of the public feed and that in the directory.
    func predecessor(_ work: WorkDirectory) throws -> Predecessor {
        let path = directory.file(Feed.fileName)
        let own = try directory.feedBytes().map { try SignedFeed($0, signatures: SignatureFiles.beside(path)) }
        guard let place = options.publicPlace else { return Predecessor(current: own, lost: lost) }
        let list = try KeyDirectory(path: directory.path).newest()
        let known = try TrustedSigners(options).keys
        let ownIsKnown = own?.isSigned(by: known) ?? false
        let taken = TakenFiles(directory: directory, work: work, place: place)
        if ownIsKnown { try takeKeyLists(taken, after: list) }
        let keys =
            try ownIsKnown
            ? known + (KeyDirectory(path: directory.path).newest()?.roles.feed.entries.map(\.key) ?? []) : known
        guard let found = try publicFeed(place, keys, ownIsKnown: ownIsKnown) else { return Predecessor(current: own) }
        var result = Predecessor(current: own, found: found)
        // The publisher's own copy replaces a feed of an attacker, who may have stolen a key.
        if options.isNew {
            if found.isSigned(by: keys) {
                result.elsewhere = Set(try directory.parsed(found.bytes).feed.releases.map(\.manifest.sha256))
            }
            return result
        }
        guard keys.isEmpty || found.isSigned(by: keys) else {
            guard ownIsKnown, let own else { throw TrustedSigners.unproven(place.source) }
            if try isUploadedInPart(found, of: own) { return result }
            throw unverified(found)
        }
        let feed = try directory.parsed(found.bytes).feed
        result.elsewhere = Set(feed.releases.map(\.manifest.sha256))
        if found.digest == own?.digest { return result }
        if let own, options.changesKeys, ownIsKnown || keys.isEmpty {
            let before = try directory.parsed(own.bytes).feed
            if !before.previous.contains(found.digest) { throw ambiguous(feed, before) }
        }
        if let own, !keys.isEmpty, !ownIsKnown, !feed.previous.contains(own.digest) {
            if own.signers().contains(where: { id in keys.contains { $0.id == id } }) { throw changed(path) }
            result.warnings.append(
                "\(path) was signed with other keys, so what only that feed has changed is not taken in: the public feed continues"
            )
        } else if let own, !feed.previous.contains(own.digest) {
            let before = try directory.parsed(own.bytes).feed
            // The directory is ahead: an upload has failed.
            if before.previous.contains(found.digest) { return result }
            if feed.previous.count == Feed.longestPast, before.serial <= feed.serial - Feed.longestPast {
                result.warnings += tooOld(before, feed).map { Advice($0) }
            } else {
                result.lost = [LostFeed(feed: before, digest: own.digest, base: nil)]
            }
        }
        try takeFiles(of: feed, taken)
        result.current = found
        return result
    }

    private func publicFeed(_ place: PublicPlace, _ keys: [PublicKey], ownIsKnown: Bool) throws -> SignedFeed? {
        let found: SignedFeed?
        do { found = try place.feed(for: keys) } catch {
            // With --new the feed is expected to be missing, and most programs fail for a missing file.
            if options.isNew { return nil }
            throw error
        }
        if let found {
            guard options.isNew, !options.changesKeys, !ownIsKnown || found.isSigned(by: keys) else { return found }
            if let own = try directory.feedBytes(), try SHA256.digest(of: own).hex == found.digest { return found }
            throw refusal(
                "a feed is already public", "--new is for the first feed, and stores refuse one that starts again",
                "Publish without --new.")
        }
        if options.isNew { return nil }
        throw refusal(
            "no public feed was found", "stores that have seen a feed refuse one that starts again",
            "Check the command or URL of --fetch-with. For the first feed at this place, add --new.")
    }

    /// Returns whether an upload of the directory has stopped in the middle: the public feed is one before that of the directory, or the
    /// beginning of it, and the record of the upload lacks it. The beginning alone proves nothing: every feed starts in the same way.
    private func isUploadedInPart(_ found: SignedFeed, of own: SignedFeed) throws -> Bool {
        if try directory.parsed(own.bytes).feed.previous.contains(found.digest) { return true }
        guard own.bytes.starts(with: found.bytes), let way = options.upload else { return false }
        return try FeedUpload(directory.path, by: way).hasBegun(own.digest)
    }

    /// Returns the error for a public feed without a signature by a known key. It may be one of another publisher, whose signatures
    /// or key lists could not be read.
    private func unverified(_ found: SignedFeed) -> MoultError {
        let signers = found.signers().map(\.description).sorted().joined(separator: " and ")
        return refusal(
            "the public feed cannot be verified",
            signers.isEmpty
                ? "no signature of it was found"
                : "its signature is by key \(signers), which is neither a key of this command nor in a key list next to the feed",
            "If its signatures and key lists are public, try again. To replace a feed that is not yours with that of "
                + "\(directory.path), add --new.")
    }

    /// Returns the warning for a directory whose feed is older than all feeds that the public one names: its releases may have been
    /// overwritten, or dropped since.
    private func tooOld(_ own: Feed, _ found: Feed) -> [String] {
        let missing = own.releases.filter { release in
            release.withdrawn == nil && !found.releases.contains { $0.version.ranksWith(release.version) }
        }
        if missing.isEmpty { return [] }
        let names = missing.suffix(5).map(\.version.description).joined(separator: ", ")
        return [
            "\(names) \(missing.count == 1 ? "is" : "are") in \(directory.file(Feed.fileName)), which had serial \(own.serial), but not in "
                + "the public feed: dropped since, or overwritten by another publisher. To publish a release again, name its manifest."
        ]
    }

    private func ambiguous(_ found: Feed, _ own: Feed) -> MoultError {
        let known = Set(own.releases.map(\.version))
        let new = found.releases.map(\.version).filter { !known.contains($0) }.map(\.description)
        return refusal(
            "the public feed is not the one that this directory has published",
            "the new keys would also sign what it contains"
                + (new.isEmpty ? "" : ", such as \(new.suffix(5).joined(separator: ", "))"),
            "If another publisher has made it, first publish without --trust. If a key was stolen, replace it with this directory's feed: add --new"
        )
    }

    /// Gets the key lists after the newest one of the directory, as far as each is signed by the one before it.
    private func takeKeyLists(_ taken: TakenFiles, after list: KeyList?) throws {
        guard var list else { return }
        while let bytes = try taken.place.readIfThere(KeyList.fileName(list.serial + 1)) {
            let name = KeyList.fileName(list.serial + 1)
            var files: [(String, [UInt8])] = []
            let next = try KeyList(
                verifying: bytes, serial: list.serial + 1, product: list.product, after: list.roles, named: name,
                at: Timestamp(seconds: 0)
            ) { signature in
                let file = try taken.place.readIfThere(signature)
                if let file { files.append((signature, file)) }
                return file
            }
            guard let next else { return }
            for (name, bytes) in files + [(name, bytes)] { try taken.add(name, bytes) }
            list = next
        }
    }

    /// Gets the manifests and key lists of a verified feed that the directory does not have.
    private func takeFiles(of feed: Feed, _ taken: TakenFiles) throws {
        for serial in 1...max(1, feed.keyList ?? 0) where serial <= feed.keyList ?? 0 {
            let name = KeyList.fileName(serial)
            if try Files.facts(directory.file(name)) != nil { continue }
            guard let bytes = try taken.place.readIfThere(name) else { throw taken.place.missing(name) }
            let roles = try KeyList(parsing: bytes, source: name).roles
            try taken.addSignatures(of: name, by: roles.root.entries.map(\.key) + options.keys.map(\.publicKey))
            try taken.add(name, bytes)
        }
        let roles = try KeyDirectory(path: directory.path).newest()?.roles
        let keys = roles?.release.entries.map(\.key) ?? []
        for release in feed.releases {
            let name = release.manifest.name
            if try directory.manifest(of: release) != nil {
                // After a change of keys, there are new signatures for earlier releases.
                if let roles, roles.isSplit, try !hasSignatures(name, roles) {
                    try taken.addSignatures(of: name, by: keys)
                }
                continue
            }
            if try Files.facts(directory.file(name)) != nil { throw FeedDirectory.taken(directory.file(name)) }
            do { try taken.download(release.manifest) } catch  where release.withdrawn != nil { continue }
            try taken.addSignatures(of: name, by: keys)
        }
    }

    private func hasSignatures(_ name: String, _ roles: KeyRoles) throws -> Bool {
        let bytes = try Files.read(directory.file(name), limit: Manifest.largest) ?? []
        let there = try SignatureFiles.beside(directory.file(name))
        do {
            _ = try roles.release.verify(bytes, named: name, at: Timestamp(seconds: 0)) { wanted in
                there.first { $0.0 == wanted }?.1
            }
            return true
        } catch let error as MoultError where error.outcome == .refused { return false }
    }

    /// Gets the bundles of the releases over which a new release is tried. Without them, it is tried only over those that are
    /// in the directory.
    func takeBases(of release: SealedRelease, _ taken: TakenFiles) throws {
        guard options.tryInstall != nil else { return }
        for (path, _) in try Trials.newest(in: directory.path, before: release.manifest) {
            guard let base = try EarlierRelease(path), let bundle = base.manifest.bundle,
                try Files.facts(directory.file(bundle.file)) == nil
            else { continue }
            // The publisher may have removed a bundle on purpose.
            try? taken.download(bundle.content)
        }
    }

    /// Returns whether the directory has the bundle of a release, as that of a machine that has published it.
    private func hasBundle(of release: Feed.Release) throws -> Bool {
        guard !lacksBundles, let bundle = try directory.manifest(of: release)?.bundle else { return true }
        return try Files.facts(directory.file(bundle.file)) != nil
    }

    /// Adds to the feed what the lost feeds have changed, and returns a sentence for each change.
    func takeIn(_ lost: [LostFeed], into feed: inout Feed) throws -> [String] {
        var notes: [String] = []
        for lost in lost {
            for release in lost.feed.releases {
                let before = lost.base?.releases.first { $0.version == release.version }
                if before == release { continue }
                guard let index = feed.releases.firstIndex(where: { $0.version.ranksWith(release.version) }) else {
                    // Another publisher has dropped it since.
                    if try before != nil || !hasBundle(of: release) { continue }
                    feed.releases.append(release)
                    notes.append("added \(release.version)")
                    continue
                }
                guard feed.releases[index].manifest == release.manifest else {
                    notes.append("left out another \(release.version), because this version is already public")
                    continue
                }
                if let reason = release.withdrawn, feed.releases[index].withdrawn == nil {
                    (feed.releases[index].withdrawn, feed.releases[index].onWithdrawn) = (reason, release.onWithdrawn)
                    feed.releases[index].recommendedBy = release.recommendedBy
                    notes.append("withdrew \(release.version)")
                }
                if let before, before.channel != release.channel, feed.releases[index].channel == before.channel {
                    feed.releases[index].channel = release.channel
                    notes.append("promoted \(release.version) to \(release.channel)")
                }
                if let before, before.rollout != release.rollout, feed.releases[index].rollout == before.rollout {
                    feed.releases[index].rollout = release.rollout
                    notes.append("\(release.version) is rolled out to \(release.rollout) % of machines")
                } else if before == nil, release.rollout != feed.releases[index].rollout {
                    notes.append(
                        "\(release.version) was rolled out to \(release.rollout) % of machines there, and stays at \(feed.releases[index].rollout) %"
                    )
                }
                if let before, before.groups != release.groups, feed.releases[index].groups == before.groups {
                    feed.releases[index].groups = release.groups
                }
                for patch in release.patches where !feed.releases[index].patches.contains(patch) {
                    feed.releases[index].patches.append(patch)
                }
            }
        }
        feed.releases.sort { $0.version.precedes($1.version) }
        return notes
    }
}
