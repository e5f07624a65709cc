package import MoultBasics
package import MoultFiles
internal import MoultSandbox
package import MoultTrust
package import StepKit

/// The state of a store. Reading it needs no write permission, and changes nothing.
package struct Status: Sendable {
    package struct Kept: Sendable {
        package let name: String
        package let version: Version?
        package let size: Int
        package let isCurrent: Bool
        package let holders: [ProcessFacts]
    }

    package let root: String
    package let product: String
    package let app: Version?
    package let follow: Policy.Follow
    package let holds: Holds
    /// The feed that the store follows.
    package let feed: String?
    /// The channel of the feed.
    package let channel: String?
    /// The keys in force: those of the newest key list, or the pinned ones.
    package let keys: KeyRoles?
    /// The installed release, if only revoked keys have signed it.
    package let revoked: RevokedRelease?
    /// The pinned keys themselves: anyone can make another key with the same ID.
    package let trustedKeys: [String]
    /// The key list that replaced the pinned keys.
    package let keyList: KeyListFacts?
    /// The path of the key list under which the release was installed, if the store has lost it.
    let lostKeyList: String?
    package let current: Kept?
    package let since: Timestamp?
    /// When the publisher made the installed release, and when it expires.
    package let created: Timestamp?
    package let expires: Timestamp?
    /// The age of the installed data; nil without a limit.
    package let age: DataAge?
    /// Whether `moult rollback` would find a release to return to.
    let canRollBack: Bool
    /// The feed's content at the last request.
    package let known: KnownFeed?
    /// The process that downloads a release now; nil if no process does.
    let downloader: ProcessFacts?
    package let databases: [DatabaseState]
    package let generations: [Kept]
    package let unfinished: Unfinished
    /// What the last command that asked a feed or began an update has brought.
    package let attempt: Attempt?
    /// Why the store cannot be written; nil if it can, or if it follows no feed.
    package let obstacle: String?
    let monitoring: MonitoringSettings
    let window: TimeWindow?
    package let last: History.Entry?
    /// The latest failed attempt, if none has succeeded since.
    package let failure: History.Entry?
    /// Why the history cannot be read, and how to repair it.
    let historyFault: MoultError?
    /// The sets in quarantine with rows of the app that updates did not carry over, oldest first. They stay until the operator
    /// removes them. Empty if this user may not read the quarantine.
    package let uncarried: [QuarantineShelf.Set]
    /// What about the quarantine is over its budget; nil if nothing is.
    let quarantineExcess: String?
    /// Why the quarantine cannot be read; nil if it can, or if this user may not read it.
    let quarantineFault: MoultError?
    package let consumers: [Consumer]
    /// Readers that still use a generation no longer in service.
    package let laggards: [Laggard]
    /// Whether updates wait for readers, so that a lagging reader delays them.
    package let waitsForReaders: Bool
    /// The sandbox that protects this machine from a harmful database during checks.
    package let protection: String
    package let isFullyConfined: Bool

    package init(of store: StoreSnapshot) throws {
        let (layout, settings) = (store.layout, try store.settings)
        let validator = try Validator.available()
        (protection, isFullyConfined) = (validator.guardDescription, validator.isFullyConfined)
        root = layout.root
        (product, app, follow) = (settings.product, settings.app, settings.follow)
        holds = try store.holds
        feed = settings.feed?.url.description
        channel = settings.feed?.channel
        trustedKeys = settings.keys?.entries.map(\.key.base64) ?? []
        let installed = try store.installed
        var (saved, chain, revoked, lost): (Feed?, KeyChain?, RevokedRelease?, String?)
        do { saved = try SavedFeed.read(layout) } catch { if !Files.isDenied(error) { throw error } }
        do {
            chain = try Self.chain(settings, layout)
            revoked = try RevokedRelease.installed(in: store, keys: chain, feed: saved)
            if let mark = try installed.flatMap({ try store.sealIfSound(of: $0)?.keys }),
                try mark.list > (chain?.serial ?? 0) && mark.pinned == settings.keys?.fingerprint
            {
                lost = "\(layout.keys)/\(KeyList.fileName(mark.list))"
            }
        } catch {
            // A user who may not read these lists still gets the remaining facts.
            if !Files.isDenied(error) { throw error }
        }
        lostKeyList = lost
        keys = chain?.roles ?? settings.keys.map { KeyRoles(all: $0) }
        keyList = chain.map { KeyListFacts(name: KeyList.fileName($0.serial), expires: $0.roles.expires) }
        self.revoked = revoked
        let locks = try KernelLocks.read()
        generations = try Generation.names(layout).map { try Self.kept($0, installed, store, locks) }
        current = generations.first(where: \.isCurrent)
        since = try Files.facts(layout.current).map { Timestamp(seconds: $0.changed.seconds) }
        (created, expires) = (installed?.manifest.created, installed?.manifest.expires)
        age = try DataAge(store)
        if let installed {
            canRollBack = try RollbackTarget(
                layout: layout, settings: settings, current: installed, holds: holds
            ).exists
        } else {
            canRollBack = false
        }
        known = try KnownFeed(
            saved, layout, settings, holds, installed: installed?.manifest, revoked: revoked, keys: keys)
        let isLocked = try known?.newest != nil && Files.facts(layout.downloadLock) != nil
        downloader = isLocked ? try LockHolders.of(layout.downloadLock, in: locks).first : nil
        databases =
            try installed.map { generation in
                let assessment = try Assessment(of: generation, in: store)
                return try generation.manifest.databases.map { database in
                    var state = try assessment.state(of: database, .glance)
                    // The record of a check has the size of the file.
                    if state.size == nil { state.size = try Files.factsThroughLinks(state.path)?.size }
                    return state
                }
            } ?? []
        unfinished = try Unfinished(in: layout)
        (attempt, monitoring, window) = (Attempt.read(layout), settings.monitoring, settings.window)
        obstacle = try settings.feed == nil ? nil : Self.obstacle(layout)
        (last, failure, historyFault) = try Self.outcomes(layout)
        do {
            let sets = try QuarantineShelf(layout: layout, settings: settings).sets()
            (uncarried, quarantineExcess) = (sets.filter(\.hasUncarriedRows), settings.quarantine.excess(of: sets))
            quarantineFault = nil
        } catch let error as MoultError {
            (uncarried, quarantineExcess) = ([], nil)
            quarantineFault = Files.isDenied(error) ? nil : error
        }
        (consumers, waitsForReaders) = (settings.consumers, settings.waitForReaders > 0)
        laggards = generations.filter { !$0.isCurrent }.flatMap { kept in
            kept.holders.map { Laggard(process: $0, generation: kept.name) }
        }
    }

    /// Returns the key lists in effect; nil while the pinned keys are. If the store has no list, nothing is verified, which keeps
    /// `status` fast.
    private static func chain(_ settings: Settings, _ layout: StoreLayout) throws -> KeyChain? {
        guard let pinned = settings.keys, try !Files.list(layout.keys).isEmpty else { return nil }
        let chain = try KeyChain(pinned: pinned, product: settings.product, in: layout)
        return chain.serial > 0 ? chain : nil
    }

    /// Returns the last operation and the last failure, or why they are unknown: a store is valid without its history.
    private static func outcomes(
        _ layout: StoreLayout
    ) throws -> (last: History.Entry?, failure: History.Entry?, fault: MoultError?) {
        do {
            let history = try HistoryReader(layout)
            let last = try history.first { !$0.isAboutHolds }
            return (last, try failure(last, history), nil)
        } catch let error as MoultError where error.code == .store {
            return (nil, nil, error)
        }
    }

    /// Returns why no update could be written to the store's file system.
    private static func obstacle(_ layout: StoreLayout) throws -> String? {
        if try MountedFileSystem.of(layout.root)?.isReadOnly == true { return "its file system is read-only" }
        let free = try Files.freeSpaceAndFiles(layout.root)
        if free.bytes < 1 << 16 { return "its file system is full" }
        return free.files == 0 ? "its file system has no free inodes" : nil
    }

    private static func failure(_ last: History.Entry?, _ history: HistoryReader) throws -> History.Entry? {
        let latest =
            last?.outcome == .cleaned ? try history.first { $0.outcome != .cleaned && !$0.isAboutHolds } : last
        return latest.flatMap { [.failed, .undone, .stuck].contains($0.outcome) ? $0 : nil }
    }

    /// Returns the facts about a generation. Its name contains the version, so the manifests of generations not in service are
    /// not read.
    private static func kept(
        _ name: String, _ installed: Generation?, _ store: StoreSnapshot, _ locks: KernelLocks
    ) throws -> Kept {
        Kept(
            name: name, version: Version(Generation.version(of: name)), size: try store.size(of: name),
            isCurrent: name == installed?.name, holders: try LeaseFile.holders(of: name, store.layout, in: locks))
    }
}

/// The key list in effect in a store.
package struct KeyListFacts: Sendable {
    package let name: String
    package let expires: Timestamp?

    /// A list that expires within this many seconds needs the publisher's attention.
    private static let warningPeriod = KeyList.warningDays * 86_400

    /// Returns a warning if the key list has expired or expires soon.
    package func warning(at now: Timestamp = .now) -> String? {
        guard let expires, expires.seconds - now.seconds < Self.warningPeriod else { return nil }
        return expires < now
            ? "the key list \(name) expired at \(expires)" : "the key list \(name) expires at \(expires)"
    }
}
