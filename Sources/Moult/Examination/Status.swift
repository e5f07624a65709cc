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
    package let feed: String?
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
    let canRollBack: Bool
    /// The feed's content at the last request.
    package let known: KnownFeed?
    let downloader: ProcessFacts?
    package let databases: [DatabaseState]
    package let generations: [Kept]
    package let unfinished: Unfinished
    package let attempt: Attempt?
    /// Why the store cannot be written; nil if it can, or if it follows no feed.
    package let obstacle: String?
    let monitoring: Settings.Monitoring
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
        let holds = try store.holds
        self.holds = holds
        feed = settings.feed?.url.description
        channel = settings.feed?.channel
        trustedKeys = settings.keys?.entries.map(\.key.base64) ?? []
        let installed = try store.installed
        var (saved, chain, revoked, lost): (Feed?, KeyChain?, RevokedRelease?, String?)
        do { saved = try Feed.saved(in: layout) } catch { if !Files.isDenied(error) { throw error } }
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
        canRollBack =
            try installed.map {
                try RollbackTarget(layout: layout, settings: settings, current: $0, holds: holds).exists
            } ?? false
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
            let isCleaned = last?.outcome == .cleaned
            let latest = isCleaned ? try history.first { $0.outcome != .cleaned && !$0.isAboutHolds } : last
            return (last, latest.flatMap { [.failed, .undone, .stuck].contains($0.outcome) ? $0 : nil }, nil)
        } catch let error as MoultError where error.code == .store { return (nil, nil, error) }
    }

    private static func obstacle(_ layout: StoreLayout) throws -> String? {
        if try MountedFileSystem.of(layout.root)?.isReadOnly == true { return "its file system is read-only" }
        let free = try Files.freeSpaceAndFiles(layout.root)
        if free.bytes < 1 << 16 { return "its file system is full" }
        return free.files == 0 ? "its file system has no free inodes" : nil
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

    package struct KeyListFacts: Sendable {
        package let name: String
        package let expires: Timestamp?

        private static let warningPeriod = KeyList.warningDays * 86_400

        package func warning(at now: Timestamp = .now) -> String? {
            guard let expires, expires.seconds - now.seconds < Self.warningPeriod else { return nil }
            return expires < now
                ? "the key list \(name) expired at \(expires)" : "the key list \(name) expires at \(expires)"
        }
    }
}

extension Status {
    /// What an operator should know, worst first. Monitoring and `moult status` show these findings.
    package func findings(at now: Timestamp = .now) -> [Finding] {
        let all = databases.flatMap(\.findings) + records(at: now) + releases(at: now) + leftovers
        return [.critical, .warning, .note].flatMap { severity in all.filter { $0.severity == severity } }
    }

    private func records(at now: Timestamp) -> [Finding] {
        var all: [Finding] = []
        if current == nil {
            let release = feed == nil ? ["RELEASE"] : []
            all.add(
                .pointer, .critical, "nothing is installed",
                advice: known?.newest == nil ? "Install a release with: \(moult: ["apply"] + release)" : nil)
        }
        all += unfinished.findings
        all += holds.all.map { hold in
            Finding(
                holds.fault == nil ? .hold : .holds, holds.fault == nil ? .warning : .critical, hold.sentence,
                advice: holds.remedy([hold]))
        }
        // The record of the last attempt is newer than the history, unless the update needed an operator.
        if let failure,
            failure.outcome == .stuck || attempt.map({ $0.failure == nil && $0.time < failure.time }) ?? true
        {
            all.add(
                .failure, failure.outcome == .stuck ? .critical : .warning,
                failure.sentence + (failure.reason.map { ": \($0)" } ?? ""), advice: failure.remedy.map { Advice($0) })
        }
        all += attempt?.findings(monitoring, followsFeed: feed != nil, at: now) ?? []
        if let obstacle {
            all.add(
                .unwritable, .warning, path: root, "no update can be installed: \(obstacle)",
                advice: "Make room, or make the file system writable.")
        }
        if let quarantineExcess {
            all.add(
                .quarantine, .warning, "the quarantine is over its budget: \(quarantineExcess)",
                why: "an update that would keep more is refused", advice: Settings.QuarantineBudget.advice)
        }
        for (kind, fault) in [(Finding.Kind.history, historyFault), (.quarantine, quarantineFault)] {
            guard let fault else { continue }
            all.add(kind, .warning, "\(fault.what): \(fault.why ?? "")", advice: fault.now)
        }
        return all
    }

    private func releases(at now: Timestamp) -> [Finding] {
        var all: [Finding] = []
        if let reason = known?.choice.withdrawn {
            let isReplaced = known?.newest != nil && known?.choice.isMissing == false
            let back: Advice =
                canRollBack
                ? "Go back with: \(moult: "rollback")"
                : #"No release is kept to go back to. With "onWithdrawn": "newest" in moult.json, the store installs an older one of the feed."#
            all.add(
                .withdrawn, .critical, "the installed release was withdrawn by its publisher: \(reason)",
                advice: isReplaced ? nil : back)
        }
        if let revoked { all.add(.withdrawn, .critical, revoked.sentence) }
        if let known, known.newest != nil, known.choice.isMissing {
            all.add(.newer, .warning, known.choice.unreadable, advice: "Check the feed with: \(moult: "check")")
        } else if let newest = known?.newest {
            let words = ["apply"] + (window == nil ? [] : ["\(newest)"])
            all.add(
                .newer, window?.isOpen(at: now) == false ? .note : .warning, "\(newest) is available and not installed",
                why: downloader.map { "it is being downloaded by \($0.description)" }
                    ?? window.map { "updates are installed at \($0)" },
                advice: downloader != nil ? nil : "Install it with: \(moult: words)")
        }
        if let known, known.isExpired(at: now) {
            all.add(
                .expiry, .warning, "the feed was valid until \(known.expires)",
                why: "an attacker may be withholding newer ones",
                advice: "Check for a newer one with: \(moult: "check")")
        }
        if let lostKeyList {
            all.add(
                .keyList, .warning, path: lostKeyList, "the key list is missing, under which the release was installed",
                why: "without it, no release is accepted", advice: "Get it from the feed: \(moult: "apply")")
        }
        if let created = known?.created, created.seconds > now.seconds + 3600 {
            all.add(
                .clock, .warning, "the clock of this machine shows \(now), and the feed was made at \(created)",
                why: "with a wrong clock, an expired feed is accepted", advice: "Correct the clock.")
        }
        if let text = keyList?.warning(at: now) { all.add(.expiry, .warning, text) }
        if let age, age.isOver(at: now) {
            all.add(
                .age, .critical, age.sentence, why: age.reason,
                advice: "Install a newer release with: \(moult: "apply")")
        }
        if let expires, expires < now { all.add(.expiry, .warning, "the release was valid until \(expires)") }
        return all
    }

    private var leftovers: [Finding] {
        let names = uncarried.map { $0.record?.database ?? "" }
        let rows = names.enumerated().filter { names.firstIndex(of: $1) == $0 }.map { _, name in
            let own = uncarried.filter { $0.record?.database == name }
            let count = own.flatMap { $0.record?.rows ?? [:] }.reduce(0) { $0 + $1.value }
            let isUncounted = own.contains { $0.record?.rows == nil }
            let (rows, verb) = (isUncounted ? "rows" : counted(count, "row"), !isUncounted && count == 1 ? "is" : "are")
            return Finding(
                .uncarried, .warning, database: name,
                "\(name): \(rows) that an update did not carry over \(verb) in quarantine",
                advice: "See them with: \(moult: "quarantine")")
        }
        let readers = waitsForReaders ? laggards : []
        return rows + readers.map { Finding(.laggard, .warning, $0.text) }
    }
}
