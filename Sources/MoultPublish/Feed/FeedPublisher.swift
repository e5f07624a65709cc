internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Publishes releases to a directory of static files, for any web server, object store or USB stick.
package struct FeedPublisher {
    let directory: FeedDirectory
    let options: PublishOptions
    /// Whether the directory is a copy of a feed without its bundles and patches.
    let lacksBundles: Bool
    let lost: [LostFeed]

    package init(_ directory: String, _ options: PublishOptions) {
        self.init(directory, options, lacksBundles: false, lost: [])
    }

    init(_ directory: String, _ options: PublishOptions, lacksBundles: Bool, lost: [LostFeed]) {
        self.directory = FeedDirectory(path: directory)
        (self.options, self.lacksBundles, self.lost) = (options, lacksBundles, lost)
    }

    /// Adds releases by their sealed manifests, applies the changes, and renews the feed. If anything fails before the new feed
    /// is public, the old feed stays.
    package func publish(_ manifests: [String]) throws -> PublishReport {
        let isNew = try Files.facts(directory.path) == nil
        let output = try PinnedDirectory.output(directory.path, creating: true)
        defer { withExtendedLifetime(output) {} }
        do {
            // The lock waits by itself.
            let wait = options.publicPlace == nil ? 0 : options.wait
            return try retryingRace(seconds: wait) { try publishLocked(manifests) }
        } catch {
            // An empty directory would look like a feed. A directory that is not empty stays.
            if isNew { try? Files.removeEmpty(directory.path) }
            throw error
        }
    }

    private func publishLocked(_ manifests: [String]) throws -> PublishReport {
        let lock = try directory.lock(wait: options.wait)
        defer { withExtendedLifetime(lock) {} }
        // Creating the work directory completes or undoes the work of a killed command.
        let work = try WorkDirectory(in: directory.path, named: ".moult-publish")
        defer { work.remove() }
        let predecessor = try predecessor(work)
        let current = predecessor.current
        if current == nil, options.serial == nil, !options.isNew { try requireNoEarlierFeed(manifests) }
        try requireSigningKey(current != nil)
        let releases = try manifests.map { try SealedRelease($0, options: options) }
        let list = try KeyDirectory(path: directory.path).newest()
        try requireTrustedKeys(list)
        // Nothing in the feed is parsed before its signature was verified, unless it has none.
        if let current { try requireKnownSignature(current, list) }
        let before = try current.map { try directory.parsed($0.bytes) }
        let unsigned = list == nil && !options.keys.isEmpty ? directory.unsignedReleases(current, before?.feed) : []
        guard let product = before?.feed.product ?? releases.first?.manifest.product else {
            throw refusal(
                "no feed at \(directory.file(Feed.fileName))", "a feed starts with its first release",
                "Specify the manifest of a release.")
        }
        let next = try nextList(after: list, product)
        let signing = try SigningKeys(
            options.keys, before: list, next: next?.list, repeats: options.changesKeys && next == nil)
        try requireKeyOrConsent()
        let clockWarnings = try checkClock(against: before?.feed)
        var feed = try renewed(
            before?.feed, above: predecessor.lost.map(\.feed.serial).max() ?? 0, product, list: next?.list ?? list)
        feed.previous = past(of: predecessor, before?.feed)
        let takenIn = try takeIn(predecessor.lost, into: &feed)
        var added: [SealedRelease] = []
        for release in releases where try add(release, to: &feed) { added.append(release) }
        for change in options.changes { try make(change, in: &feed, signing) }
        let dropped = try drop(from: &feed, publishing: releases)
        let faults = try FeedFaults(directory) { [lacksBundles] release in
            lacksBundles || predecessor.elsewhere.contains(release.manifest.sha256)
        }
        let new = Set(releases.map(\.manifest.version))
        try faults.refuse(feed.releases.filter { !new.contains($0.version) })
        if let place = options.publicPlace {
            let taken = TakenFiles(directory: directory, work: work, place: place)
            for release in added { try takeBases(of: release, taken) }
        }
        try installForTrial(added, over: before?.feed.releases ?? [])
        try keepPatches(of: releases, in: &feed)
        let text = Array(feed.json.pretty.utf8)
        guard text.count <= Feed.largest else {
            throw refusal(
                "the feed is too large", "its size would be \(text.count) bytes, and the limit is \(Feed.largest)",
                "Drop old releases with --keep-releases, or start a new feed.")
        }
        // Reads the file in the same way as stores.
        _ = try Feed(parsing: text, source: directory.file(Feed.fileName))
        let preview = PublishPreview(
            directory.file(Feed.fileName), before: before?.feed, next: feed, list: next?.list ?? list,
            signsAgain: next != nil, takenIn: takenIn,
            warnings: predecessor.warnings + clockWarnings + warnings(next?.list ?? list, before?.feed, feed))
        try options.announce?(preview)
        let signatures = try FeedSignatures(feed: text, by: signing.feed, in: directory)
        try signing.verify(feed: text, signatures.usual, named: Feed.fileName, at: options.now)
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
        let uploaded = try options.upload.map {
            try FeedUpload(directory.path, by: $0).run(after: predecessor, to: options.publicPlace)
        }
        var report = PublishReport(
            feed: directory.file(Feed.fileName), serial: feed.serial, expires: feed.expires,
            added: added.map(\.manifest.version), files: files, signers: signing.feed.map(\.publicKey.id),
            releases: feed.releases.count, isNew: before == nil, unsigned: unsigned, removed: stale,
            dropped: dropped.map(\.version), uploaded: uploaded ?? [])
        (report.takenIn, report.warnings, report.preview) = (takenIn, preview.warnings, preview)
        return report
    }

    /// Throws if the directory seems to have had a feed: stores that have seen it would refuse one that starts again.
    private func requireNoEarlierFeed(_ manifests: [String]) throws {
        let earlier = try directory.signedReleases(except: manifests)
        guard let newest = earlier.first else { return }
        throw refusal(
            "\(directory.path) has no \(Feed.fileName), but has signed releases (\(newest)"
                + (earlier.count == 1 ? ")" : " and \(counted(earlier.count - 1, "other")))"),
            "stores that have seen an earlier feed of this directory refuse one that starts again",
            "Restore \(Feed.fileName) and its signatures from a copy, or continue with a serial above the last one: --serial N. "
                + "If no store has seen a feed of this directory: --new")
    }

    /// Returns the digests of the feeds before the next one, newest first, without gaps and with those that were lost.
    private func past(of predecessor: Predecessor, _ before: Feed?) -> [String] {
        guard let current = predecessor.current else { return [] }
        let all = [current.digest] + predecessor.lost.map(\.digest) + (before?.previous ?? [])
        return Array(all.prefix(Feed.longestPast))
    }

    /// If the command failed after the new feed became public, returns the error with that information.
    private func explainPublicFeed(after error: any Error, _ feed: Feed) -> any Error {
        guard var error = error as? MoultError, error.outcome == .stuck else { return error }
        error.what = "the feed with serial \(feed.serial) is public, but the command did not finish"
        return error
    }

    /// Makes trial installations of the releases, because a release that no store could install must not be published.
    private func installForTrial(_ releases: [SealedRelease], over earlier: [Feed.Release]) throws {
        for release in releases {
            try release.verifyBundle()
            _ = try Trials(
                of: release.path, release.manifest, over: [], and: directory.path, listedIn: earlier,
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

    /// Lists in the feed the patches of new releases that save bytes, one entry for each release that needs the patch, and removes
    /// the entries of releases that are no longer in the feed. Every other entry stays, whatever else changes.
    private func keepPatches(of new: [SealedRelease], in feed: inout Feed) throws {
        let bases = PatchBases.keeping(feed, newest: options.patches)
        for index in feed.releases.indices {
            let release = feed.releases[index]
            if let sealed = new.first(where: { $0.manifest.version == release.version }) {
                for base in feed.releases where base.version.precedes(release.version) && bases.contains(base.version) {
                    for patch in try sealed.patches(from: base, new, directory) {
                        let entry = Feed.Release.Patch(from: base.version, file: patch.file)
                        if !feed.releases[index].patches.contains(entry) { feed.releases[index].patches.append(entry) }
                    }
                }
            }
            feed.releases[index].patches.removeAll { !bases.contains($0.from) }
        }
    }

    /// Returns the next feed. `other` is the highest serial of a feed that was public in addition to the previous one.
    private func renewed(_ before: Feed?, above other: Int, _ product: String, list: KeyList?) throws -> Feed {
        let keyList = list?.serial
        // With a new key list, serials may start again.
        let isNewList = before.map { $0.keyList ?? 0 < keyList ?? 0 } ?? true
        let last = max(before?.serial ?? 0, other)
        let mayRestart = isNewList && last >= Feed.serialRange
        let serial = options.serial ?? (mayRestart ? 1 : last + 1)
        if before != nil, serial <= last, !isNewList {
            throw refusal(
                "the feed cannot have serial \(serial)",
                "the current feed has serial \(last), and stores accept only a higher one",
                "Choose a higher serial, or omit --serial.")
        }
        let base = isNewList ? 0 : last
        guard serial - base <= Feed.serialRange else {
            throw refusal(
                "the feed cannot have serial \(serial)",
                "stores refuse a serial more than \(Feed.serialRange) above \(base)",
                "Choose a lower serial, or omit --serial.")
        }
        // Stores accept no feed under an expired key list.
        let end = min(options.now.seconds + options.days * 86_400, list?.roles.expires?.seconds ?? .max)
        return Feed(
            product: product, serial: serial, created: options.now, expires: Timestamp(seconds: end),
            releases: before?.releases ?? [], keyList: keyList)
    }

    /// Adds a release; returns whether it is new. After an interruption, the publisher may publish the same release again.
    private func add(_ new: SealedRelease, to feed: inout Feed) throws -> Bool {
        let version = new.manifest.version
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
                if old.version != version {
                    throw refusal(
                        "release \(version) is not newer than \(old.version)", "only their build metadata differs",
                        version.adviceOnBuildMetadata)
                }
                throw published(entry, as: old)
            }
        }
        feed.releases.append(try new.entry)
        feed.releases.sort { $0.version.precedes($1.version) }
        return true
    }

    /// Returns the error for a version that the feed already has with a different entry.
    private func published(_ new: Feed.Release, as old: Feed.Release) -> MoultError {
        let what = "version \(old.version) is already published"
        let another: Advice = "Choose another version for the release."
        guard new.manifest == old.manifest else {
            return refusal(what, "the content of a version must never change", another)
        }
        if let reason = old.withdrawn {
            return refusal(what, "it was withdrawn: \(reason); a withdrawal cannot be undone", another)
        }
        if new.channel != old.channel {
            let words = ["moult", "publish", directory.path, "--promote", "\(old.version)", "--to", new.channel]
            return refusal(
                what, "it is in the channel \(old.channel)",
                old.channel == Feed.Release.defaultChannel
                    ? another : "To offer the published release to other stores: \(run: words + keyWords)")
        }
        guard new.rollout != old.rollout else {
            return refusal(
                what, "its entry in the feed differs from the release, and a published entry cannot be changed", another
            )
        }
        return refusal(
            what,
            "it is rolled out to \(old.rollout) % of machines, and this command would change that to \(new.rollout) %",
            changingRollout(of: old.version, to: new.rollout))
    }

    private func make(_ change: PublishOptions.Change, in feed: inout Feed, _ signing: SigningKeys) throws {
        switch change {
        case .withdraw(let version, let reason, let recommended):
            let index = try index(of: version, in: feed)
            (feed.releases[index].withdrawn, feed.releases[index].onWithdrawn) = (reason, recommended)
            feed.releases[index].recommendedBy = try signatures(
                onRecommendation: feed.releases[index], of: feed.product, by: signing)
        case .roll(let version, let share, let groups):
            let index = try index(of: version, in: feed)
            if let reason = feed.releases[index].withdrawn {
                throw refusal(
                    "release \(version) cannot be rolled out", "it was withdrawn: \(reason)",
                    "Publish its content as a new version.")
            }
            feed.releases[index].rollout = share
            if !groups.isEmpty { feed.releases[index].groups = groups }
        case .promote(let version, let channel, let share, let groups):
            try promote(version, to: channel, share, groups, in: &feed)
        case .trust, .keyList: break
        }
    }

    private func promote(
        _ version: Version, to channel: String, _ share: Int, _ groups: [String], in feed: inout Feed
    ) throws {
        let index = try index(of: version, in: feed)
        let release = feed.releases[index]
        // After an interruption, the publisher may promote the same release again.
        if release.channel == channel, release.rollout == share, release.groups == groups, release.withdrawn == nil {
            return
        }
        let obstacle: (why: String, now: Advice)? =
            if let reason = release.withdrawn {
                ("it was withdrawn: \(reason)", "Publish its content as a new version.")
            } else if release.channel == channel {
                ("it is in this channel, for \(release.share)", changingRollout(of: version, to: share))
            } else if release.channel == Feed.Release.defaultChannel {
                (
                    "stores of every channel get the releases of \(release.channel)",
                    "Withdraw it, or change its rollout."
                )
            } else { nil }
        if let obstacle {
            throw refusal("release \(version) cannot be promoted to \(channel)", obstacle.why, obstacle.now)
        }
        (feed.releases[index].channel, feed.releases[index].rollout) = (channel, share)
        feed.releases[index].groups = groups
    }

    private func changingRollout(of version: Version, to share: Int) -> Advice {
        let words = ["moult", "publish", directory.path, "--release", "\(version)", "--rollout", "\(share)"]
        return "To change the rollout of a published release: \(run: words + keyWords)"
    }

    private var keyWords: [String] { options.keys.isEmpty ? [] : ["--key", "FILE"] }

    private func index(of version: Version, in feed: Feed) throws -> Int {
        if let index = feed.releases.firstIndex(where: { $0.version == version }) { return index }
        throw refusal(
            "no release \(version) in the feed",
            "its newest releases are \(feed.releases.suffix(5).map(\.version.description).joined(separator: ", "))",
            "Choose one of them.")
    }
}
