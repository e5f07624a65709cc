internal import MoultBasics
internal import MoultFiles
internal import MoultTransport
internal import MoultTrust
internal import StepKit

struct FeedFollower {
    let planner: Planner
    var layout: StoreLayout { planner.layout }
    let request: FeedRequest
    let settings: Settings
    let reader: FeedReader
    let transport: Transport
    private(set) var places: [Location]

    init(planner: Planner, request: FeedRequest, watcher: Watcher) throws {
        (self.planner, self.request) = (planner, request)
        let layout = planner.layout
        let settings = try planner.store.settings
        self.settings = settings
        let named =
            try request.place.map { [try Self.complete($0, settings)] } ?? settings.feed.map {
                try MirrorOrder(layout).addresses(of: $0)
            }?.map { Self.absolute($0, layout) } ?? []
        guard !named.isEmpty else {
            throw MoultError(
                .noFeed, .usage, what: "the store \(layout.root) has no feed",
                why: "\(layout.settings) does not configure one",
                now: "Specify a feed with --feed URL, or add \"feed\" to \(layout.settings). "
                    + "To install a release without a feed: \(moult: "apply", "RELEASE")")
        }
        places = try named.map(Self.location)
        var retryPolicy = Transport.RetryPolicy()
        let limits = settings.feed ?? FeedSettings(url: Address(""))
        (retryPolicy.patience, retryPolicy.minimumRate) = (limits.patience, limits.minimumRate)
        (retryPolicy.fileDeadline, retryPolicy.bandwidth) = (limits.fileDeadline, limits.bandwidth)
        transport = Transport(
            retryPolicy, budget: NetworkBudget(seconds: limits.deadline),
            proof: try limits.client.proof(for: Self.configuredPlaces(settings, layout)),
            after: request.content?.transport, stopIfAsked: { try watcher.stopIfAsked() })
        reader = FeedReader(
            layout: layout, settings: settings, places: places, transport: transport,
            allowUnsigned: request.allowUnsigned, isConfigured: request.place == nil,
            allowOlder: request.update.allowDowngrade, content: request.content)
    }

    /// Relative paths in the settings are relative to the store, not to the working directory.
    private static func absolute(_ place: Address, _ layout: StoreLayout) -> Address {
        let text = place.withSecrets
        return text.contains("://") || text.isAbsolutePath ? place : Address("\(layout.root)/\(text)")
    }

    private static func location(_ address: Address) throws -> Location {
        let place = try Location(address)
        return if case .file(let path) = place { .file(Feed.file(at: path)) } else { place }
    }

    /// Returns the locations of the store's own feed as listed in the settings, not in the order of `MirrorOrder`.
    static func configuredPlaces(_ settings: Settings, _ layout: StoreLayout) throws -> [Location] {
        try (settings.feed?.addresses ?? []).map { try location(absolute($0, layout)) }
    }

    /// Returns whether one of the locations may provide a release: a USB stick may have the whole feed, but the files of only
    /// one release.
    static func isAvailable(_ release: Feed.Release, at places: [Location]) throws -> Bool {
        if places.isEmpty { return true }
        return try places.contains { place in
            guard case .file(let path) = place.beside(release.manifest.name) else { return true }
            // A missing directory, for example on a disk that is not mounted, is treated like a server that cannot be reached.
            return try Files.factsThroughLinks(path) != nil || Files.factsThroughLinks(Files.directory(of: path)) == nil
        }
    }

    /// Returns the address with its secrets, which a saved plan does not contain. They come from the settings, if these specify
    /// the same feed.
    private static func complete(_ place: Address, _ settings: Settings) throws -> Address {
        guard place.isRedacted else { return place }
        if let address = settings.feed?.addresses.first(where: { $0.description == place.description }) {
            return address
        }
        throw MoultError(
            .noFeed, .refused, what: "the password or token for \(place) is unknown",
            why: "saved plans do not contain it, and moult.json does not name this feed",
            now: "Add the whole URL to \"feed\" in moult.json, or apply without a plan: \(moult: "apply", "URL")")
    }

    /// Puts the mirror that served the feed first, because others may be down or slow.
    mutating func prefer(_ place: Location) { places = [place] + places.filter { $0 != place } }

    func choose(from current: FeedReader.Current, _ store: StoreSnapshot) throws -> FeedChoice.Result {
        let holds = try store.holds
        // If the holds cannot be read, every release is blocked, which would look as if the store were up to date.
        if holds.fault != nil, let refusal = holds.refusal(of: moultVersion) { throw refusal }
        return try FeedChoice(
            feed: current.feed, installed: store.installedVersion,
            revoked: RevokedRelease.installed(in: store, keys: current.keys, feed: current.feed),
            onWithdrawn: onWithdrawn(store, current), channel: settings.feed?.channel ?? Feed.Release.defaultChannel,
            holds: holds, policy: planner.policy(request.update, settings), machine: .this(settings.rollout),
            only: request.version, isAvailable: { [places] in try Self.isAvailable($0, at: places) }
        ).choose()
    }

    private func onWithdrawn(_ store: StoreSnapshot, _ current: FeedReader.Current) throws -> Feed.OnWithdrawn? {
        try settings.onWithdrawn(store.installedVersion, in: current.feed, keys: current.keys?.roles)
    }

    func ask() throws -> FeedReader.Current { try reader.ask(keep: keep) }

    /// Saves a key list: a key that it revokes must never be trusted again.
    private func keep(_ chain: KeyChain) throws {
        do { try chain.keep() } catch {
            // A user with only read access still gets the result.
            if !Files.isDenied(error) { throw error }
        }
    }

    /// Saves the verified feed, so that no older feed is accepted later, and an unchanged feed costs one request.
    func remember(_ current: FeedReader.Current) throws {
        if current.files.isEmpty { return }
        try Files.ensureDirectory(layout.feed)
        // A location that cannot report "unchanged", such as a directory, returns the same files each time; they are not
        // written again.
        for file in current.files {
            let path = "\(layout.feed)/\(file.name)"
            if try Files.read(path, limit: Feed.largest) != file.bytes { try Files.replace(path, with: file.bytes) }
        }
        let before = try ReplayGuard.read(layout)
        let seen = current.seen
        if try seen != before || !ReplayGuard.isThere(layout) { try seen.write(layout, durable: true) }
    }

    // MARK: releases

    func incoming(
        _ release: Feed.Release, of current: FeedReader.Current, then: [Version] = [], notes: [String] = []
    ) throws -> Planner.Incoming {
        let patches = try release.patches.map(\.file).filter { name in
            // A USB stick may have only the bundle.
            guard case .file(let path) = current.place.beside(name) else { return true }
            return try Files.factsThroughLinks(path) != nil
        }
        let origin = Plan.Origin(
            place: current.place.address, serial: current.feed.serial, manifest: release.manifest.name,
            size: release.manifest.size, sha256: release.manifest.sha256, then: then, notes: notes)
        var incoming = try incoming(
            release.manifest, origin, current.place, version: release.version, patches: Set(patches)
        ) { bytes, place in
            let own = try verifyOwnSignatures(bytes, at: place, current)
            try release.requireSame(as: Manifest(parsing: bytes, as: .sealed, source: place.description), place)
            return own ?? current.provenance
        }
        if try RevokedRelease.installed(in: planner.store, keys: current.keys, feed: current.feed) != nil {
            incoming.reasonToLeave = "is signed only by keys that are no longer trusted"
        } else if try onWithdrawn(planner.store, current) == .newest {
            incoming.reasonToLeave = "was withdrawn by its publisher"
        }
        return incoming
    }

    /// Prepares the release whose manifest is at the location itself, without a feed. Whether its patches exist is unknown
    /// until they are downloaded. With `readsOnly`, nothing is written.
    func incoming(_ manifest: ReleaseSource.Content, readsOnly: Bool) throws -> Planner.Incoming {
        let (bytes, place) = (manifest.bytes, places[0])
        let provenance = try reader.provenance(ofManifest: bytes, at: place, keep: readsOnly ? { _ in } : keep)
        let release = try Manifest(parsing: bytes, as: .sealed, source: place.description)
        return Planner.Incoming(
            bytes: bytes, name: place.description, path: nil, provenance: provenance,
            isSignedByReleaseKeys: provenance.isSigned,
            origin: Plan.Origin(
                place: place.address, serial: nil, manifest: place.name, size: bytes.count,
                sha256: try SHA256.digest(of: bytes).hex, then: [], notes: []),
            patches: Set(release.patches.map(\.file)))
    }

    /// Verifies a manifest by its own signatures if feed keys are not allowed to sign releases. Returns nil if the feed's
    /// signatures suffice.
    private func verifyOwnSignatures(
        _ bytes: [UInt8], at place: Location, _ current: FeedReader.Current
    ) throws -> Provenance? {
        guard let keys = current.keys, keys.roles.isSplit else { return nil }
        return try reader.provenance(ofManifest: bytes, at: place, by: keys)
    }

    /// Returns the release of a saved plan, with the same checks as an update without a plan: keys may have been revoked since, and
    /// a plan file is not signed. Nil if the feed has withdrawn the release, or does not have it any more.
    mutating func incoming(planned origin: Plan.Origin) throws -> Planner.Incoming? {
        guard origin.serial != nil else {
            let file = Feed.File(name: origin.manifest, size: origin.size, sha256: origin.sha256)
            let bytes = try bytes(of: places[0], file, transport)
            return try incoming(ReleaseSource.Content(address: places[0].address, bytes: bytes), readsOnly: false)
        }
        let current = try ask()
        prefer(current.place)
        try remember(current)
        let release = current.feed.releases.first {
            $0.withdrawn == nil && $0.manifest.sha256 == origin.sha256 && $0.manifest.name == origin.manifest
        }
        return try release.map { try incoming($0, of: current, then: origin.then, notes: origin.notes) }
    }

    private func incoming(
        _ file: Feed.File, _ origin: Plan.Origin, _ feed: Location, version: Version?, patches: Set<String>,
        verify: ([UInt8], Location) throws -> Provenance
    ) throws -> Planner.Incoming {
        var faults: [MoultError] = []
        let places = [feed] + places.filter { $0 != feed }
        for (index, place) in places.enumerated() {
            do {
                let manifest = place.beside(file.name, sha256: file.sha256, ofVersion: version.map { "\($0)" })
                let bytes = try self.bytes(of: manifest, file, transport.share(of: places.count - index))
                var path: String?
                let provenance = try verify(bytes, manifest)
                // If the directory lacks the bundle, the files are downloaded from any of the locations, as from servers.
                if case .file(let name) = manifest, try places.count == 1 || Self.hasBundle(bytes, beside: name) {
                    path = name
                }
                return Planner.Incoming(
                    bytes: bytes, name: manifest.description, path: path, provenance: provenance,
                    isSignedByReleaseKeys: provenance.isSigned, origin: origin, patches: patches)
            } catch let error as MoultError {
                if error.code == .interrupted { throw error }
                faults.append(error)
            }
        }
        throw faults.first { $0.outcome == .refused } ?? faults[0]
    }

    private static func hasBundle(_ bytes: [UInt8], beside manifest: String) throws -> Bool {
        guard let bundle = try Manifest(parsing: bytes, as: .sealed, source: manifest).bundle else { return true }
        return try Files.factsThroughLinks("\(Files.directory(of: manifest))/\(bundle.file)")?.size == bundle.size
    }

    private func bytes(of manifest: Location, _ file: Feed.File, _ transport: Transport) throws -> [UInt8] {
        guard case .bytes(let bytes, _) = try transport.read(manifest, limit: file.size) else {
            let isFile = if case .file = manifest { true } else { false }
            throw MoultError(
                .notThere, what: "no manifest at \(manifest)",
                why: "the feed lists it, but the \(isFile ? "directory" : "server") does not have it",
                now: isFile
                    ? "Copy the missing files to the directory, then try again."
                    : "Try again later, or report it to the publisher.")
        }
        guard bytes.count == file.size, try SHA256.digest(of: bytes).hex == file.sha256 else {
            throw MoultError(
                .digest, .refused, what: "\(manifest) is not the manifest listed in the feed",
                why: "its size or SHA-256 does not match", now: "Try again later, or report it to the publisher.")
        }
        return bytes
    }

    /// Downloads the files that a plan needs and that are not cached: patches, or the bundle.
    func fetchFiles(of prepared: Planner.PreparedPlan, _ watcher: Watcher) throws {
        try forFiles(of: prepared) { try Downloads(layout).fetch($0, from: places, by: transport, watcher) }
    }

    /// Returns where the files are that a plan needs and that are not cached. Throws what `fetchFiles` would throw for a file that no
    /// location has.
    func findFiles(of prepared: Planner.PreparedPlan) throws -> [Location] {
        var found: [Location] = []
        try forFiles(of: prepared) {
            if let place = try Downloads(layout).find($0, at: places, by: transport) { found.append(place) }
        }
        return found
    }

    private func forFiles(of prepared: Planner.PreparedPlan, _ body: (Downloads.Place) throws -> Void) throws {
        guard prepared.plan.manifestPath == nil else { return }
        let (downloads, release) = (Downloads(layout), prepared.context.release)
        for file in prepared.plan.patches {
            guard let patch = release.patches.first(where: { $0.file == file.file }) else { continue }
            do { try body(downloads.place(of: patch)) } catch let error as MoultError {
                if error.code == .interrupted || error.code == .system || error.code == .helper { throw error }
                throw PatchFault([patch.file], error)
            }
        }
        if prepared.plan.bundle != nil, let bundle = release.bundle { try body(downloads.place(of: bundle)) }
    }

    func fetched(_ bundle: Manifest.Bundle, _ watcher: Watcher) throws -> String {
        let place = Downloads(layout).place(of: bundle)
        try Downloads(layout).fetch(place, from: places, by: transport, watcher)
        return place.path
    }

    func signatures(of release: Feed.Release, _ current: FeedReader.Current) throws -> [(name: String, bytes: [UInt8])]
    {
        let names =
            current.keys?.roles.release.signatureNames(of: release.manifest.name) ?? [
                "\(release.manifest.name).minisig"
            ]
        // Another user may have put a link to a file of this user there, so only signatures are returned.
        return try names.compactMap { name in
            let place = current.place.beside(name, ofVersion: "\(release.version)")
            let answer = try transport.read(place, limit: Provenance.largestSignature)
            guard case .bytes(let bytes, _) = answer, (try? Signature(file: bytes, named: name)) != nil else {
                return nil
            }
            return (name, bytes)
        }
    }
}

extension Feed.Release {
    /// Throws unless the manifest matches the release's description in the feed: feed keys must not be able to change a
    /// release.
    fileprivate func requireSame(as manifest: Manifest, _ place: Location) throws {
        let differs: (String, String, String)? =
            if version != manifest.version {
                ("version", "\(version)", "\(manifest.version)")
            } else if sequence != manifest.sequence {
                ("sequence", "\(sequence)", "\(manifest.sequence)")
            } else if requires != manifest.requires {
                ("requires", requires.words, manifest.requires.words)
            } else { nil }
        guard let (field, own, other) = differs else { return }
        throw MoultError(
            .distrusted, .refused, what: "\(place) is not the release listed in the feed",
            why: "\(field) is \(other) in the manifest and \(own) in the feed", now: "Report this to the publisher.")
    }
}

extension Manifest.Requires {
    fileprivate var words: String {
        let parts = [("app", app), ("moult", moult), ("from", from)].compactMap { name, range in
            range.map { "\(name) \($0)" }
        }
        return parts.isEmpty ? "nothing" : parts.joined(separator: ", ")
    }
}
