internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Makes plans by asking the steps, phase by phase, for their effects. Planning writes nothing, except the metadata of files
/// that were verified, and that only under the store's lock.
package struct Planner {
    package let store: StoreSnapshot
    let steps: StepSet
    /// The consumers of the app itself, in addition to those in the settings.
    let inProcess: [Consumer]
    /// Whether processes that do not close a database are killed (`--force-after`).
    let forcesRelease: Bool
    /// Patches and bases that turned out to be unusable.
    var avoided: Set<String> = []
    /// Whether the plan is made under the store's lock, so that the metadata of files that had to be read may be recorded.
    private var isLocked = false

    package init(store: StoreSnapshot, steps: StepSet, inProcess: [Consumer], forcesRelease: Bool) {
        (self.store, self.steps) = (store, steps)
        (self.inProcess, self.forcesRelease) = (inProcess, forcesRelease)
    }

    package var layout: StoreLayout { store.layout }

    /// Returns the same planner for use under the store's lock, with the store's present state.
    package func locked(_ store: StoreSnapshot) -> Planner {
        var planner = Planner(store: store, steps: steps, inProcess: inProcess, forcesRelease: forcesRelease)
        (planner.avoided, planner.isLocked) = (avoided, true)
        return planner
    }

    package struct PreparedPlan {
        package var plan: Plan
        package let store: StoreSnapshot
        package let context: PlanContext
        /// The manifest, read once and verified.
        let incoming: Incoming
        var bytes: [UInt8] { incoming.bytes }
    }

    /// A manifest that is verified but not parsed yet.
    package struct Incoming {
        package let bytes: [UInt8]
        package let name: String
        /// The path of the manifest; nil if only its content is available.
        package let path: String?
        let provenance: Provenance
        /// Whether release keys have signed the manifest, or a feed with its digest: then the publisher's proofs in it count.
        let isSignedByReleaseKeys: Bool
        /// Where the release was found; nil for a manifest on this machine.
        var origin: Plan.Origin?
        /// The patches that the feed still offers.
        var patches: Set<String> = []
        /// A directory with the verified files of the bundle.
        var unpacked: String?
        /// Why a trusted feed offers the release to a store whatever its installed release is; nil if it does not.
        package var reasonToLeave: String?
    }

    package func update(_ release: ReleaseFile, _ request: UpdateRequest) throws -> PreparedPlan {
        let (path, bytes) = (try Files.absolute(release.path), release.bytes)
        // Verified first: an unverified manifest is not even parsed.
        let provenance = try MistakenManifest.explaining(bytes, release.path) {
            try Provenance(of: bytes, at: path, keys: presentKeys(store.settings))
        }
        var incoming = Incoming(
            bytes: bytes, name: release.path, path: path, provenance: provenance,
            isSignedByReleaseKeys: provenance.isSigned || request.hasProofs)
        incoming.unpacked = request.unpacked
        return try update(incoming, request)
    }

    /// Returns the keys in effect, which differ from the pinned ones if the publisher has replaced those; nil if the store
    /// trusts none.
    private func presentKeys(_ settings: Settings) throws -> KeyChain? {
        guard let pinned = settings.keys else { return nil }
        let chain = try KeyChain(pinned: pinned, product: settings.product, in: layout)
        try chain.requireCurrent()
        return chain
    }

    package func update(_ incoming: Incoming, _ request: UpdateRequest) throws -> PreparedPlan {
        let settings = try store.settings
        let manifest = try MistakenManifest.explaining(incoming.bytes, incoming.name) {
            try Manifest(parsing: incoming.bytes, as: .sealed, source: incoming.name)
        }
        guard manifest.product == settings.product else {
            throw MoultError(
                .refused, .refused, what: "\(incoming.name) is a release of \(manifest.product)",
                why: "the store \(layout.root) holds \(settings.product)", now: "Use a store for that product.")
        }
        try check(request.consent, manifest)
        let generation = try Generation.name(of: manifest, bytes: incoming.bytes)
        // A hold does not prevent a repair of the installed release.
        if try generation != store.installedName, let refusal = try store.holds.refusal(of: manifest.version) {
            throw refusal
        }
        var policy = policy(request, settings)
        if let reason = incoming.reasonToLeave {
            // As in a rollback, rows that the release does not preserve are kept.
            (policy.reasonToLeave, policy.acceptUnpreserved) = (reason, true)
        }
        let prepared: PreparedPlan
        do { prepared = try make(.update, manifest, incoming, generation: generation, policy) } catch let error
            as MoultError
        {
            let isOlder = try store.installedVersion.map { manifest.version.precedes($0) } ?? false
            guard isOlder, error.outcome == .refused, !policy.allowDowngrade, policy.follow != .match else {
                throw error
            }
            throw withoutVainAdvice(error, manifest, incoming, generation: generation, policy)
        }
        try refuseDamage(that: prepared.plan)
        return prepared
    }

    /// Returns the refusal of an older release. If consent to the downgrade would not help, the error says why instead of advising it.
    private func withoutVainAdvice(
        _ refusal: MoultError, _ manifest: Manifest, _ incoming: Incoming, generation: String, _ policy: Policy
    ) -> MoultError {
        var (policy, refusal) = (policy, refusal)
        policy.allowDowngrade = true
        do { _ = try make(.update, manifest, incoming, generation: generation, policy) } catch {
            let why = "With --allow-downgrade it would be refused, too: \(error.problem)."
            refusal.now = "\(why) To roll back instead: \(moult: "rollback")"
        }
        return refusal
    }

    /// Throws if a database has a fault, and the update would keep its content: because the installed release would be installed
    /// again to no effect, or because the new release ships the same file.
    private func refuseDamage(that plan: Plan) throws {
        let isSame = plan.from?.generation == plan.to.generation
        let kept = plan.from == nil ? [] : plan.keptDatabases
        guard isSame ? !plan.changesStore : !kept.isEmpty, let installed = try store.installed else { return }
        let assessment = try Assessment(of: installed, in: store)
        for database in installed.manifest.databases
        where isSame ? !database.kind.isSealed : database.kind == .shared && kept.contains(database.name) {
            let state = try assessment.state(of: database, .glance)
            // Of a user database, an update with a migration refuses.
            if isSame, database.kind.isReplaced, let refusal = state.refusal { throw refusal }
            guard let fault = state.fault, isSame || state.needsReset else { continue }
            let advice = state.needsReset ? fault.advice : nil
            throw MoultError(
                .refused, .refused, what: "\(state.path) needs repair", why: fault.what,
                now: "Nothing was changed: installing \(plan.to.version)\(isSame ? " again" : "") does not repair it. "
                    + (advice ?? "To check it: \(moult: "verify", database.name)"))
        }
    }

    /// Throws if the consent names a database that the release does not have: otherwise a misspelled name would appear to be
    /// accepted.
    private func check(_ consent: Consent, _ manifest: Manifest) throws {
        let names = manifest.databases.map(\.name)
        guard let wrong = consent.takeOver.sorted().first(where: { !names.contains($0) }) else { return }
        throw MoultError(
            .refused, .refused, what: "release \(manifest.version) has no database \"\(wrong)\" to take over",
            why: itsNames("database", names), now: didYouMean(wrong, among: names))
    }

    package func policy(_ request: UpdateRequest, _ settings: Settings) -> Policy {
        var policy = Policy(
            follow: request.follow ?? settings.follow, allowDowngrade: request.allowDowngrade,
            appVersion: request.app ?? settings.app, moultVersion: moultVersion, cacheRoot: settings.cacheRoot)
        (policy.takeOver, policy.acceptUnpreserved) = (request.consent.takeOver, request.consent.acceptsUnpreserved)
        policy.checkTime = request.checkTime
        policy.checkTime.fixed = request.checkTime.fixed ?? settings.checkTimeout
        policy.verify = settings.verify
        return policy
    }

    func kept(_ generation: Generation) throws -> Incoming { try kept(generation, store.settings) }

    private func kept(_ generation: Generation, _ settings: Settings) -> Incoming {
        Incoming(
            bytes: generation.bytes, name: generation.name, path: nil,
            provenance: settings.keys == nil ? .unsigned : .kept, isSignedByReleaseKeys: false)
    }

    /// Plans a rollback. `force` allows a release on hold, if it is the `wanted` one.
    package func rollback(
        to wanted: String?, reason: String, force: Bool = false, consent: Consent = Consent()
    ) throws -> PreparedPlan {
        let settings = try store.settings
        let current = try installed(for: "a rollback needs an installed release")
        let holds = try store.holds
        let target = RollbackTarget(layout: layout, settings: settings, current: current, holds: holds)
        let choice = try target.choose(wanted, force: force)
        let older = try store.generation(choice.name)
        try check(consent, older.manifest)
        var policy = policy(Self.keeping, settings)
        (policy.takeOver, policy.acceptUnpreserved) = (consent.takeOver, true)
        var prepared = try make(.rollback, older.manifest, kept(older, settings), generation: choice.name, policy)
        prepared.plan.warnings += choice.skipped.map { Advice($0) }
        let version = current.manifest.version.description
        let before = holds.hold(on: version)
        prepared.plan.hold = Hold(
            release: version, reason: reason.isEmpty ? before?.reason ?? Hold.rolledBack : reason, since: .now)
        prepared.plan.replacedHold = before
        prepared.plan.request.force = force
        return prepared
    }

    /// Plans a reset: one database of the installed release is set aside and recreated from the file in its generation.
    package func reset(_ name: String, why: String, setsUserDataAside: Bool) throws -> PreparedPlan {
        let current = try installed(for: "a reset needs an installed release")
        try check(resetOf: name, current.manifest, setsUserDataAside: setsUserDataAside)
        return try reset(current, name, because: why)
    }

    private func check(resetOf name: String, _ release: Manifest, setsUserDataAside: Bool) throws {
        guard let database = release.database(name) else {
            let names = release.databases.filter { !$0.kind.isSealed }.map(\.name)
            throw MoultError(
                .refused, .refused, what: "release \(release.version) has no database \"\(name)\"",
                why: names.isEmpty
                    ? "all of its databases are read-only"
                    : "the databases that can be reset are \(names.joined(separator: ", "))",
                now: didYouMean(name, among: names))
        }
        if database.kind.isSealed {
            throw MoultError(
                .refused, .refused, what: "\(name) cannot be reset", why: "it is read-only",
                now: "Repair it from its release: \(moult: "apply", "RELEASE")")
        }
        if !database.kind.isDisposable, !setsUserDataAside {
            throw MoultError(
                .refused, .refused, what: "\(name) contains user data",
                why: "a reset sets all of it aside and starts with \(database.kind.freshContent)",
                now: "If you want that: \(moult: "reset", name, "--set-user-data-aside")")
        }
    }

    private func installed(for why: String? = nil) throws -> Generation {
        if let installed = try store.installed { return installed }
        throw MoultError(
            .refused, .refused, what: "nothing is installed in \(layout.root)", why: why,
            now: "Install a release first: \(moult: "apply", "RELEASE")")
    }

    /// Plans to restore one database, or the rows of one table, from quarantine. To restore the database, its present content
    /// is set aside.
    package func restore(_ name: String, from file: String, why: String, table: RestoredTable? = nil) throws
        -> PreparedPlan
    { try reset(installed(), name, because: why, restoring: file, table) }

    private func reset(
        _ current: Generation, _ name: String, because why: String, restoring file: String? = nil,
        _ table: RestoredTable? = nil
    ) throws -> PreparedPlan {
        let settings = try store.settings
        let prepared = try make(
            .reset, only: name, because: why, restoring: file, table: table, current.manifest, kept(current, settings),
            generation: current.name, policy(Self.keeping, settings))
        // No rename leads from one file system to another.
        for case .quarantine(let path, _, _) in prepared.plan.effects.map(\.change) {
            try layout.requireOneFileSystem(moving: path)
        }
        return prepared
    }

    private static let keeping = UpdateRequest(follow: .match, allowDowngrade: true)

    private func make(
        _ purpose: PlanContext.Purpose, only: String? = nil, because reason: String = "", restoring: String? = nil,
        table: RestoredTable? = nil, _ manifest: Manifest, _ incoming: Incoming, generation: String, _ policy: Policy
    ) throws -> PreparedPlan {
        let id = Self.newID()
        if purpose == .update { try PathLimit(layout).check(manifest, generation: generation, transaction: id) }
        if purpose != .reset { try steps.check(manifest) }
        let view = RecordingView(
            store: store, renews: isLocked, incoming: purpose == .update ? (generation, incoming.bytes) : nil)
        let installed = try store.installed(orAs: incoming.bytes, manifest)
        view.note(try .read(layout.current, "target"))
        view.note(try .read(layout.settings, "content"))
        view.note(try .read(layout.holds, "content"))
        if let path = incoming.path {
            view.note(Plan.Fact(path: path, field: "content", value: try Generation.digest(of: incoming.bytes)))
        }
        var context = PlanContext(
            purpose: purpose, only: only, because: reason, release: manifest, generation: generation,
            installed: installed?.manifest, installedGeneration: installed?.name,
            resources: incoming.path.map(Files.directory(of:)) ?? layout.generation(generation), policy: policy,
            store: view)
        (context.restoring, context.restoringTable) = (restoring, table)
        if incoming.isSignedByReleaseKeys, manifest.databases.contains(where: { $0.proved != nil }) {
            context.trustsProofs = true
            context.reused = try ReusableFiles(in: store, without: avoided).members(of: manifest)
        }
        var plan = Plan(
            id: id, created: policy.now, purpose: purpose, store: layout.root, product: manifest.product,
            from: installed.map { Generation.Reference(version: $0.manifest.version, generation: $0.name) },
            to: Generation.Reference(version: manifest.version, generation: generation), manifestPath: incoming.path,
            origin: incoming.origin, bundle: nil, trust: incoming.provenance.words,
            request: Plan.Request(
                follow: policy.follow, allowDowngrade: policy.allowDowngrade, app: policy.appVersion,
                cacheRoot: policy.cacheRoot, takeOver: policy.takeOver, acceptUnpreserved: policy.acceptUnpreserved,
                checkTimeout: policy.checkTime.fixed),
            effects: [], needs: 0, facts: [], warnings: manifest.warnings.map { Advice($0) }, hold: nil)
        let notes = Notes()
        context.note = { notes.add($0, $1) }
        let consumers = try store.settings.consumers
        context.isReleased = { [forcesRelease, inProcess] name in
            forcesRelease || (consumers + inProcess).contains { $0.isConcerned(with: name) }
        }
        for phase in Phase.allCases {
            for step in steps.steps(of: phase, for: manifest, purpose) {
                plan.effects += try step.effects(in: context)
                context.planned = plan.effects
            }
        }
        try requireWritable(plan.effects, by: manifest)
        if generation == installed?.name { plan.effects = Self.withoutRepetition(plan.effects) }
        plan.steps = notes.all
        plan.calls = plan.calls(of: consumers + inProcess, from: installed?.manifest, to: manifest)
        for case .command(let command) in (consumers.filter { plan.call($0) != nil }.map(\.means)) {
            try command.check(in: layout.root)
        }
        plan.warnings += try PlanWarnings.of(manifest, in: context)
        plan.warnings += PlanWarnings.of(consumers, manifest, installed?.manifest)
        if purpose != .reset {
            plan.warnings += try ChangedGeneration.warnings(layout)
            let beside = incoming.path.map { "\(Files.directory(of: $0))/\(Feed.fileName)" }
            plan.warnings += PlanWarnings.withdrawal(of: manifest, in: ["\(layout.feed)/\(Feed.fileName)", beside])
        }
        try addSources(to: &plan, manifest, incoming, view)
        plan.facts = view.facts
        try plan.addNeeds(manifest, bytes: incoming.bytes.count, in: store)
        return PreparedPlan(plan: plan, store: store, context: context, incoming: incoming)
    }

    /// Replaces custom effects with `keep` if nothing else changes: their steps ran when the release was installed, and do not
    /// run again.
    private static func withoutRepetition(_ effects: [Effect]) -> [Effect] {
        guard !effects.contains(where: { $0.changesStore && !$0.isCustom }) else { return effects }
        return effects.map { effect in
            guard effect.isCustom else { return effect }
            var kept = effect
            kept.change = .keep(why: "done when the release was installed")
            return kept
        }
    }

    private final class Notes: @unchecked Sendable {
        // Unchecked: a step plans on the thread that called it.
        private(set) var all: [Plan.Enforcement] = []
        func add(_ step: String, _ text: String) {
            let note = Plan.Enforcement(step: step, text: text)
            if !all.contains(note) { all.append(note) }
        }
    }

    /// Returns an id that is unique and sorts by time.
    package static func newID() -> String {
        let stamp = Timestamp.now.description.filter { $0.isNumber }
        let random = String(UInt32.random(in: .min ... .max), radix: 16)
        return "\(stamp)-\(String(repeating: "0", count: 8 - random.count))\(random)"
    }
}

extension Plan {
    fileprivate var keptDatabases: [String] {
        effects.compactMap { if case .keep = $0.change { $0.database } else { nil } }
    }
}
