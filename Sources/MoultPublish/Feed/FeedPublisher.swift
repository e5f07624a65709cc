internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Publishes releases into a directory of static files, which any web server, object store or stick can carry.
package struct FeedPublisher {
    let directory: FeedDirectory
    let options: PublishOptions

    package init(_ directory: String, _ options: PublishOptions) {
        self.directory = FeedDirectory(path: directory)
        self.options = options
    }

    /// Adds releases by their sealed manifests, makes the changes, and renews the feed: all of it, or the old feed stays.
    package func publish(_ manifests: [String]) throws -> PublishReport {
        try Files.ensureDirectory(directory.path)
        guard let lock = try FileLock.take(directory.path, .exclusive, directory: true) else {
            // The directory is public, so that every process can lock it.
            let holders = try LockHolders.of(directory.path).map(\.description)
            throw MoultError(
                .publishing, .busy, what: "\(directory.path) is in use",
                why: holders.isEmpty
                    ? "another moult publishes there" : "\(holders.joined(separator: ", ")) has its lock",
                now: "Try again later.")
        }
        defer { withExtendedLifetime(lock) {} }
        let before = try directory.feed()
        try proveSigned(before != nil)
        let releases = try manifests.map { try SealedRelease($0, options: options) }
        var feed = try renewed(before?.feed, product: releases.first?.manifest.product)
        for release in releases { try add(release, to: &feed) }
        for change in options.changes { try make(change, in: &feed) }
        let stale = try keepPatches(of: releases, in: &feed)
        let text = Array(feed.json.pretty.utf8)
        guard text.count <= Feed.largest else {
            throw refusal(
                "the feed has become too large",
                "it would have \(text.count) bytes, and at most \(Feed.largest) are read",
                "Begin another feed.")
        }
        // What stores will read is read as they will.
        _ = try Feed(parsing: text, source: directory.file(Feed.fileName))
        // The feed last: whoever sees it finds all that it names.
        let files = try releases.flatMap { try $0.bring(into: directory, in: feed) } + keyList(in: feed)
        try directory.replace(text, before: before?.digest, keys: options.keys)
        for name in stale { try Files.remove(directory.file(name)) }
        return PublishReport(
            feed: directory.file(Feed.fileName), serial: feed.serial, expires: feed.expires,
            added: releases.map(\.manifest.version), files: files, signers: options.keys.map(\.publicKey.id),
            releases: feed.releases.count, removed: stale.sorted())
    }

    /// Lists the patches that lead away from one of the last releases and pay; gives those that were kept until now.
    private func keepPatches(of new: [SealedRelease], in feed: inout Feed) throws -> Set<String> {
        let files: (Feed) -> Set<String> = { Set($0.releases.flatMap(\.patches).map(\.file)) }
        let before = files(feed)
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
        return before.subtracting(files(feed))
    }

    /// A feed that was signed once is waited for with a signature.
    private func proveSigned(_ isThere: Bool) throws {
        guard isThere, options.keys.isEmpty else { return }
        if try Files.facts(directory.file("\(Feed.fileName).minisig")) != nil {
            throw refusal(
                "\(directory.file(Feed.fileName)) is signed, and no key is named",
                "stores that trust its key would refuse it without", "Name the key with --key FILE.")
        }
    }

    private func renewed(_ before: Feed?, product: String?) throws -> Feed {
        guard let product = before?.product ?? product else {
            throw refusal(
                "there is no feed at \(directory.file(Feed.fileName))", "it begins with its first release",
                "Name the sealed manifest of a release.")
        }
        let serial = options.serial ?? (before?.serial ?? 0) + 1
        if let before, serial <= before.serial {
            throw refusal(
                "the feed cannot have serial \(serial)", "it has serial \(before.serial), and stores refuse to go back",
                "Take a higher one, or leave it to moult.")
        }
        return Feed(
            product: product, serial: serial, created: options.now,
            expires: Timestamp(seconds: options.now.seconds + options.days * 86_400), releases: before?.releases ?? [])
    }

    private func add(_ new: SealedRelease, to feed: inout Feed) throws {
        let (version, sequence) = (new.manifest.version, new.manifest.sequence)
        guard new.manifest.product == feed.product else {
            throw refusal(
                "\(new.path) is a release of \(new.manifest.product)", "the feed is that of \(feed.product)",
                "Publish it to the feed of its product.")
        }
        for old in feed.releases {
            if old.version.ranksWith(version) {
                throw refusal(
                    "version \(version) was published already", "a version stands for one content for ever",
                    "Give the release another version.")
            }
            if old.sequence == sequence || (old.sequence < sequence) != old.version.precedes(version) {
                throw refusal(
                    "release \(version) has sequence \(sequence), and \(old.version) has \(old.sequence)",
                    "a newer version must have a higher sequence, or stores could not go from one to the other",
                    "Give it a sequence that fits.")
            }
        }
        feed.releases.append(try new.entry)
        feed.releases.sort { $0.sequence < $1.sequence }
    }

    private func make(_ change: PublishOptions.Change, in feed: inout Feed) throws {
        switch change {
        case .withdraw(let version, let reason): feed.releases[try index(of: version, in: feed)].withdrawn = reason
        case .roll(let version, let share): feed.releases[try index(of: version, in: feed)].rollout = share
        case .trust: break
        }
    }

    private func index(of version: Version, in feed: Feed) throws -> Int {
        if let index = feed.releases.firstIndex(where: { $0.version == version }) { return index }
        throw refusal(
            "there is no release \(version) in the feed",
            "it has \(feed.releases.suffix(5).map(\.version.description).joined(separator: ", "))", "Name one of them.")
    }

    /// Writes the next list of keys, signed by the present ones.
    private func keyList(in feed: Feed) throws -> [String] {
        for case .trust(let keys, let threshold) in options.changes {
            guard !options.keys.isEmpty else {
                throw refusal(
                    "a list of keys must be signed", "stores take it from a key that they trust",
                    "Name the present key with --key FILE.")
            }
            var serial = 1
            while try Files.facts(directory.file(KeyList.fileName(serial))) != nil { serial += 1 }
            let list = KeyList(
                product: feed.product, serial: serial,
                keys: TrustedKeys(keys.map { TrustedKeys.Entry(key: $0) }, threshold: threshold))
            let name = KeyList.fileName(serial)
            let bytes = Array(list.json.pretty.utf8)
            _ = try KeyList(parsing: bytes, source: name)
            // Its signatures first: a list without them would be passed over.
            for (place, file) in try directory.signatures(of: bytes, named: name, by: options.keys) {
                try directory.write(place, file)
            }
            try directory.write(name, bytes)
            return [name]
        }
        return []
    }

    private func refusal(_ what: String, _ why: String, _ now: String) -> MoultError {
        MoultError(.publishing, .refused, what: what, why: why, now: now)
    }
}
